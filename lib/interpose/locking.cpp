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
    if (result == 0 || error != ENOMEM || !wanted.present) return result;
    // Of the counters that the process shows to others, most are not in use.
    if (!platform::lock_content(wanted.when_touched, "/memfd:tensorpool",
                                tensorpool::pages::lies_in_page_map)) {
        errno = error;
        return result;
    }
    return wanted.later == 0 ? 0 : next(wanted.later);
}
