#include <algorithm>

#include "device/caching/caching_core.hpp"

// What is tried before a request fails, the cheapest first. Each step that was taken stands on the
// timeline, with what it brought.

namespace tensorpool::device {

CachingCore::Outcome CachingCore::under_pressure(StreamCache& cache, const Request& request,
                                                 Outcome refused, Lock& lock) {
    Outcome outcome = refused;
    const auto try_again = [&](bool gave_back) {
        outcome.block = take_free(cache, request);
        outcome.memory = AllocatorWatch::Memory::recycled;
        if (outcome.block == nullptr && gave_back) {
            settle_memory(lock);
            outcome = grow(cache, request, lock);
        }
        const bool over =
            outcome.block != nullptr ||
            (outcome.status != DeviceStatus::ok && outcome.status != DeviceStatus::out_of_memory);
        if (outcome.block != nullptr) {
            detail::add(totals_.pressures, 1);
            watch_.write(EntryKind::pressure, request.bytes);
        }
        return over;
    };
    if (cache.capture() != 0) return outcome;  // nothing may be asked of the device, or waited for

    const std::size_t free = free_bytes();
    complete(0);
    watch_.write(EntryKind::completed, free_bytes() - free);
    if (try_again(false)) return outcome;

    watch_.write(EntryKind::coalesced, flush_all());
    // What other streams had parked may be whole slabs now, or granules to be moved.
    if (is_expandable(cache) ? try_again(true) : try_again(false)) return outcome;

    const std::size_t aged = give_back(Which::aged, most_bytes, lock);
    watch_.write(EntryKind::aged, aged);
    if (aged != 0 && try_again(true)) return outcome;

    watch_.write(EntryKind::called_back, request.bytes);
    lock.unlock();
    watch_.failing(request.bytes, cache.stream());
    lock.lock();
    if (try_again(true)) return outcome;

    flush_all();
    const std::size_t cached = give_back(Which::all, most_bytes, lock);
    watch_.write(EntryKind::uncached, cached);
    if (cached != 0 && try_again(true)) return outcome;

    wait_for_returns(lock);
    const std::size_t waited_for = synchronize(lock);
    watch_.write(EntryKind::synchronized, waited_for);
    (void)try_again(true);
    return outcome;
}

/// What other threads are giving back counts as held until they have.
void CachingCore::wait_for_returns(Lock& lock) {
    if (AllocatorWatch::is_telling()) return;
    grown_.wait(lock, [this] { return returns_ == 0; });
}

void CachingCore::settle_memory(Lock& lock) noexcept {
    if (!abilities_.late_free_size) return;
    lock.unlock();
    (void)backend_.settle_memory(device_);
    lock.lock();
}

}  // namespace tensorpool::device
