// mlockall, for programs with a limit on locked memory. The system compares the limit with all
// addresses of the process, also with those that pools have only reserved.

#include <sys/mman.h>

#include <cerrno>

#include "interpose/next_call.hpp"
#include "pages/look_ups.hpp"
#include "platform/files/system_files_linux.hpp"

namespace tensorpool::interpose {
namespace {

constinit Next<int (*)(int)> next_mlockall{"mlockall"};

[[maybe_unused]] const bool finds_early = (next_mlockall.get(), true);

struct Mapping {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    bool is_locked = false;
};

/// Reads a line of /proc/self/maps. Its memory is not to be locked if it has no content: addresses
/// that are reserved, parts of the page map that were never written, and counters, most of which
/// are not in use. Nor are pages of the kernel.
Mapping parse(std::string_view line) noexcept {
    Mapping mapping;
    std::string_view addresses = platform::take_field(line, ' ');
    const std::string_view first = platform::take_field(addresses, '-');
    std::from_chars(first.data(), first.data() + first.size(), mapping.begin, 16);
    std::from_chars(addresses.data(), addresses.data() + addresses.size(), mapping.end, 16);
    const std::string_view access = platform::take_field(line, ' ');
    const bool is_map = access.starts_with("r-") &&
                        pages::lies_in_page_map(reinterpret_cast<const void*>(mapping.begin));
    mapping.is_locked = !access.starts_with("---") && !is_map &&
                        line.find("/memfd:tensorpool") == line.npos &&
                        line.find(" [v") == line.npos;
    return mapping;
}

/// Locks what mlockall(MCL_CURRENT) would, but for memory without content. Returns false, and
/// changes nothing, if that is more than the limit allows or the mappings cannot be read.
bool lock_content(bool when_touched) noexcept {
    rlimit limit = {};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return false;
    std::size_t bytes = 0;
    std::string_view line;
    for (platform::LineReader mappings("/proc/self/maps"); mappings.next(line);) {
        const Mapping mapping = parse(line);
        if (mapping.is_locked) bytes += mapping.end - mapping.begin;
    }
    if (bytes == 0 || bytes > limit.rlim_cur) return false;
    for (platform::LineReader mappings("/proc/self/maps"); mappings.next(line);) {
        const Mapping mapping = parse(line);
        // Like mlockall, it ignores parts that the system cannot make resident.
        if (mapping.is_locked)
            (void)mlock2(reinterpret_cast<const void*>(mapping.begin), mapping.end - mapping.begin,
                         when_touched ? MLOCK_ONFAULT : 0);
    }
    return true;
}

}  // namespace
}  // namespace tensorpool::interpose

namespace interpose = tensorpool::interpose;

extern "C" TENSORPOOL_API int mlockall(int flags) noexcept {
    const auto next = interpose::next_mlockall.get();
    const int result = next(flags);
    const int error = errno;
    if (result == 0 || error != ENOMEM || (flags & MCL_CURRENT) == 0) return result;
    if (!interpose::lock_content((flags & MCL_ONFAULT) != 0)) {
        errno = error;
        return result;
    }
    const int later = flags & ~MCL_CURRENT;
    return later == 0 || later == MCL_ONFAULT ? 0 : next(later);
}
