#include <pthread.h>

#include "base/never_destroyed.hpp"
#include "platform/process/fork_handlers.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

constinit base::NeverDestroyed<ForkTable> table;

enum class Asked : unsigned { no, being_asked, yes };
constinit std::atomic<Asked> asked_the_system = Asked::no;

bool ask_the_system() noexcept {
    Asked asked = Asked::no;
    if (!asked_the_system.compare_exchange_strong(asked, Asked::being_asked,
                                                  std::memory_order_relaxed)) {
        return asked == Asked::yes;
    }
    const SystemCalls system_calls;
    const bool done =
        pthread_atfork([] { table.get().before(); }, [] { table.get().after_in_parent(); },
                       [] { table.get().after_in_child(); }) == 0;
    asked_the_system.store(done ? Asked::yes : Asked::no, std::memory_order_relaxed);
    return done;
}

}  // namespace

bool set_fork_handlers(ForkPlace place, void (*before)(), void (*after_in_parent)(),
                       void (*after_in_child)()) noexcept {
    return ask_the_system() && table.get().set(place, {before, after_in_parent, after_in_child});
}

}  // namespace tensorpool::platform
