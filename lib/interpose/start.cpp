#include "interpose/minimum.hpp"
#include "interpose/visit.hpp"
#include "platform/platform.hpp"

namespace tensorpool::interpose {
namespace {

// Added after the pool's handlers, whose library starts before this one: so called before theirs
// ahead of a fork and after theirs behind it. Handlers of other libraries may run in between, while
// this thread holds the pool's locks; what they ask for is the next allocator's.
bool start() {
    const bool watches_forks = platform::set_fork_handlers(enter_pool, leave_pool, leave_pool);
    if (watches_forks) {
        minimum_bytes.store(minimum_from_environment(), std::memory_order_relaxed);
    }
    return watches_forks;
}

[[maybe_unused]] const bool started = start();

}  // namespace
}  // namespace tensorpool::interpose
