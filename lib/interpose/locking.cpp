// mlockall, for programs with a limit on locked memory. The system compares the limit with all
// addresses of the process, also with those that pools have only reserved.

#include <cerrno>

#include "interpose/next_call.hpp"
#include "pages/look_ups.hpp"
#include "platform/memory/locked_memory.hpp"

namespace tensorpool::interpose {
namespace {

constinit Next<int (*)(int)> next_mlockall{"mlockall"};

[[maybe_unused]] const bool finds_early = (next_mlockall.get(), true);

}  // namespace
}  // namespace tensorpool::interpose

namespace interpose = tensorpool::interpose;
namespace platform = tensorpool::platform;

extern "C" TENSORPOOL_API int mlockall(int flags) noexcept {
    const auto next = interpose::next_mlockall.get();
    const int result = next(flags);
    const int error = errno;
    const platform::LockAll wanted = platform::read_lock_flags(flags);
    // With MCL_FUTURE, it stays refused: pools commit addresses that were reserved before.
    if (result == 0 || error != ENOMEM || !wanted.present || wanted.later) return result;
    // Of the counters that the process shows to others, most are not in use.
    if (platform::lock_content(wanted.when_touched, "/memfd:tensorpool",
                               tensorpool::detail::lies_in_page_map))
        return 0;
    errno = error;
    return result;
}
