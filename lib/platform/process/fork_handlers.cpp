#include "platform/process/fork_handlers.hpp"

#include "base/never_destroyed.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {

bool ForkTable::set(ForkStage number, const ForkHandlers& handlers) noexcept {
    Entry& entry = entries_[static_cast<unsigned>(number)];
    State state = State::free;
    if (!entry.state.compare_exchange_strong(state, State::being_set, std::memory_order_acquire)) {
        return state == State::set;
    }
    entry.handlers = handlers;
    entry.state.store(State::set, std::memory_order_release);
    return true;
}

void ForkTable::before() noexcept {
    mutex_.lock();
    for (Entry& entry : entries_) {
        // Pairs with the release in `set`: the handlers are visible.
        entry.called = entry.state.load(std::memory_order_acquire) == State::set;
        if (entry.called) entry.handlers.before();
    }
}

void ForkTable::after(void (*ForkHandlers::*function)()) noexcept {
    for (unsigned i = fork_stages; i-- > 0;) {
        if (entries_[i].called) (entries_[i].handlers.*function)();
    }
    mutex_.unlock();
}

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
