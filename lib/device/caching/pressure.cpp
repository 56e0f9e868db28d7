#include "device/caching/pressure.hpp"

namespace tensorpool::device {

constexpr Pressure::Step Pressure::steps[] = {
    {&Pressure::complete, Retry::search},
    // Blocks that other streams had parked may form whole slabs now, or granules that can be moved.
    {&Pressure::coalesce, Retry::grow_if_expandable},
    {&Pressure::give_aged_back, Retry::grow_if_freed},
    {&Pressure::call_back, Retry::grow},
    {&Pressure::give_all_back, Retry::grow_if_freed},
    {&Pressure::synchronize, Retry::grow},
};

Outcome Pressure::relieve(const Outcome& refused) {
    outcome_ = refused;
    // During a capture no memory is given back, and the device may not be waited for.
    if (cache_.capture() != 0) {
        if (refused.cause != Outcome::Cause::budget) outcome_.cause = Outcome::Cause::capture;
        return outcome_;
    }
    for (const Step& step : steps) {
        if (state_.asleep) return Outcome::refused(Outcome::Cause::asleep);
        const std::size_t freed = (this->*step.take)();
        if (step.retry == Retry::grow_if_freed && freed == 0) continue;
        if (is_over(may_grow_after(step.retry, freed))) break;
    }
    return outcome_;
}

bool Pressure::may_grow_after(Retry retry, std::size_t freed) const noexcept {
    switch (retry) {
        case Retry::search:
            return false;
        case Retry::grow:
            return true;
        case Retry::grow_if_freed:
            return freed != 0;
        case Retry::grow_if_expandable:
            return state_.is_expandable(cache_);
    }
    return false;
}

/// Returns whether there is a block now, or the device failed for another reason than memory.
bool Pressure::is_over(bool may_grow) {
    outcome_.block = state_.asleep ? nullptr : free_.take(cache_, request_);
    may_grow = may_grow && !state_.asleep;
    outcome_.memory = AllocatorWatch::Memory::recycled;
    if (outcome_.block == nullptr && may_grow) {
        reclaim_.settle_memory();
        outcome_ = growth_.grow(cache_, request_);
    }
    if (outcome_.block != nullptr) {
        detail::add(state_.totals.pressures, 1);
        state_.watch.write(EntryKind::pressure, request_.bytes);
        return true;
    }
    return outcome_.status != DeviceStatus::ok && !outcome_.lacks_memory();
}

std::size_t Pressure::complete() {
    const std::size_t before = free_.bytes();
    free_.complete();
    const std::size_t freed = free_.bytes() - before;
    state_.watch.write(EntryKind::completed, freed);
    return freed;
}

std::size_t Pressure::coalesce() {
    const std::size_t bytes = free_.flush_all();
    state_.watch.write(EntryKind::coalesced, bytes);
    return bytes;
}

std::size_t Pressure::give_aged_back() {
    const std::size_t bytes = reclaim_.give_back(Reclaim::Which::aged, max_bytes);
    state_.watch.write(EntryKind::aged, bytes);
    return bytes;
}

/// Returns 0: how much callbacks free is unknown, so growth is tried in any case.
std::size_t Pressure::call_back() {
    if (request_.is_retry) return 0;
    state_.watch.write(EntryKind::called_back, request_.bytes);
    const Unlocked unlocked(state_.mutex);
    state_.watch.failing(request_.bytes, cache_.stream());
    return 0;
}

std::size_t Pressure::give_all_back() {
    free_.flush_all();
    const std::size_t bytes = reclaim_.give_back(Reclaim::Which::all, max_bytes);
    state_.watch.write(EntryKind::uncached, bytes);
    return bytes;
}

std::size_t Pressure::synchronize() {
    reclaim_.wait_for_returns();
    const std::size_t bytes = reclaim_.synchronize();
    state_.watch.write(EntryKind::synchronized, bytes);
    return bytes;
}

}  // namespace tensorpool::device
