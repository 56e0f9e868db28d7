// What only Linux has. The rest is in file_pages_posix.cpp.

#include <fcntl.h>
#include <sys/mman.h>

#include "platform/files/file_pages.hpp"
#include "platform/files/input_file.hpp"
#include "platform/files/system_files_linux.hpp"
#include "platform/memory/memory_limits_linux.hpp"

namespace tensorpool::platform {
namespace {

// From the kernel's mman-common.h. The system's headers may be older than the running kernel.
constexpr int advice_populate_read = 22;

/// Returns whether the kernel (5.14 and later) supports the advice. For a range of no bytes it
/// rejects only unknown advice.
bool knows_populate_read(void* address) noexcept {
    return madvise(address, 0, advice_populate_read) == 0;
}

}  // namespace

Outcome populate_for_reading(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    if (madvise(address, bytes, advice_populate_read) == 0) return Outcome::done;
    return knows_populate_read(address) ? Outcome::refused : Outcome::unsupported;
}

std::size_t resident_file_bytes(const void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    auto* const begin = static_cast<char*>(const_cast<void*>(address));
    unsigned char answers[1024];  // the lowest bit is the answer
    const std::size_t most = sizeof answers * page_bytes();
    std::size_t pages = 0;
    for (std::size_t at = 0; at < bytes; at += most) {
        const std::size_t some = std::min(most, bytes - at);
        if (mincore(begin + at, some, answers) != 0) return 0;
        pages += static_cast<std::size_t>(
            std::count_if(answers, answers + some / page_bytes(),
                          [](unsigned char answer) { return (answer & 1U) != 0; }));
    }
    return pages * page_bytes();
}

bool InputFile::drop_from_cache(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return posix_fadvise(static_cast<int>(handle_), static_cast<off_t>(offset),
                         static_cast<off_t>(bytes), POSIX_FADV_DONTNEED) == 0;
}

std::size_t locked_memory() noexcept {
    const SystemCalls system_calls;
    LineReader lines("/proc/self/status");
    for (std::string_view line; lines.next(line);) {
        if (take_field(line, ':') != "VmLck") continue;
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        return parse_number(line).value_or(0) * 1024;
    }
    return 0;
}

MemoryRoom memory_room() noexcept {
    const SystemCalls system_calls;
    const MemoryLimits limits = read_memory_limits("");
    if (limits.binding != no_limit) return {limits.available, limits.binding, true};
    return {limits.available, total_memory(), false};
}

}  // namespace tensorpool::platform
