#include "platform/memory/locked_memory.hpp"

#include <sys/mman.h>

#include <cstdint>

#include "platform/files/system_files_linux.hpp"

namespace tensorpool::platform {
namespace {

/// A line of /proc/self/maps (proc(5)).
struct Mapping {
    explicit Mapping(std::string_view line) noexcept {
        std::string_view addresses = take_field(line, ' ');
        const std::string_view first = take_field(addresses, '-');
        std::from_chars(first.data(), first.data() + first.size(), begin, 16);
        std::from_chars(addresses.data(), addresses.data() + addresses.size(), end, 16);
        access = take_field(line, ' ');
        const std::size_t at = line.find_first_of("/[");
        if (at != std::string_view::npos) name = line.substr(at);
    }

    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::string_view access;
    std::string_view name;
};

/// Calls `function` for each mapping to lock. Pages of the kernel, such as [vvar], are none.
template <class Function>
void for_each_content(std::string_view without, bool (*is_unwritten)(const void*),
                      Function function) noexcept {
    std::string_view line;
    for (LineReader lines("/proc/self/maps"); lines.next(line);) {
        const Mapping mapping(line);
        const bool is_reserved = mapping.access.starts_with("---") ||
                                 (mapping.access.starts_with("r-") &&
                                  is_unwritten(reinterpret_cast<const void*>(mapping.begin)));
        if (!is_reserved && !mapping.name.starts_with("[v") && !mapping.name.starts_with(without))
            function(mapping);
    }
}

}  // namespace

LockAll read_lock_flags(int flags) noexcept {
    return {(flags & MCL_CURRENT) != 0, (flags & MCL_ONFAULT) != 0, (flags & MCL_FUTURE) != 0};
}

bool lock_content(bool when_touched, std::string_view without,
                  bool (*is_unwritten)(const void*)) noexcept {
    rlimit limit = {};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return false;
    std::size_t bytes = 0;
    for_each_content(without, is_unwritten,
                     [&](const Mapping& mapping) { bytes += mapping.end - mapping.begin; });
    if (bytes == 0 || bytes > limit.rlim_cur) return false;
    // Like mlockall, it ignores parts that the system cannot make resident.
    bool is_any_locked = false;
    for_each_content(without, is_unwritten, [&](const Mapping& mapping) {
        if (mlock2(reinterpret_cast<const void*>(mapping.begin), mapping.end - mapping.begin,
                   when_touched ? MLOCK_ONFAULT : 0) == 0)
            is_any_locked = true;
    });
    return is_any_locked;
}

}  // namespace tensorpool::platform
