#include "platform/process/fork_handlers.hpp"

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

}  // namespace tensorpool::platform
