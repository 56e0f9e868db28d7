#include "platform/process/fork_handlers.hpp"

namespace tensorpool::platform {

bool ForkTable::set(ForkPlace number, const ForkHandlers& handlers) noexcept {
    Place& place = places_[static_cast<unsigned>(number)];
    State state = State::free;
    if (!place.state.compare_exchange_strong(state, State::being_set, std::memory_order_acquire)) {
        return state == State::set;
    }
    place.handlers = handlers;
    place.state.store(State::set, std::memory_order_release);
    return true;
}

void ForkTable::before() noexcept {
    mutex_.lock();
    for (Place& place : places_) {
        // Pairs with the release in set: the handlers are seen.
        place.called = place.state.load(std::memory_order_acquire) == State::set;
        if (place.called) place.handlers.before();
    }
}

void ForkTable::after(void (*ForkHandlers::*function)()) noexcept {
    for (unsigned i = fork_places; i-- > 0;) {
        if (places_[i].called) (places_[i].handlers.*function)();
    }
    mutex_.unlock();
}

}  // namespace tensorpool::platform
