#include <pthread.h>

#include "base/never_destroyed.hpp"
#include "platform/process/fork_handlers.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

constinit base::NeverDestroyed<ForkTable> table;

enum class Registered : unsigned { no, in_progress, yes };
constinit std::atomic<Registered> registered = Registered::no;

bool register_with_system() noexcept {
    Registered seen = Registered::no;
    if (!registered.compare_exchange_strong(seen, Registered::in_progress,
                                            std::memory_order_relaxed)) {
        return seen == Registered::yes;
    }
    const SystemCalls system_calls;
    const bool done =
        pthread_atfork([] { table.get().before(); }, [] { table.get().after_in_parent(); },
                       [] { table.get().after_in_child(); }) == 0;
    registered.store(done ? Registered::yes : Registered::no, std::memory_order_relaxed);
    return done;
}

}  // namespace

bool set_fork_handlers(ForkStage place, void (*before)(), void (*after_in_parent)(),
                       void (*after_in_child)()) noexcept {
    return register_with_system() &&
           table.get().set(place, {before, after_in_parent, after_in_child});
}

}  // namespace tensorpool::platform
