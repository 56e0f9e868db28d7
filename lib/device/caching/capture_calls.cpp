#include "device/caching/capture_calls.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace tensorpool::device {

void CaptureCalls::begin() noexcept {
    const Lock lock(state_.mutex);
    captures_.begin();
}

void CaptureCalls::end() noexcept {
    const Lock lock(state_.mutex);
    captures_.end();
}

bool CaptureCalls::reserve(std::size_t bytes, DeviceAllocationFailure& failure) {
    const Lock lock(state_.mutex);
    limits::BudgetRequest budget = BlockSearch::new_budget_request();
    const Request request = {.bytes = bytes,
                             .rounded = base::align_up(bytes, slab_step),
                             .pool = Pool::small,
                             .budget = &budget};
    Outcome outcome;
    do {
        outcome = search_.reserve(request);
    } while (search_.may_retry(outcome, budget));
    if (outcome.status == DeviceStatus::ok) return true;
    search_.explain(outcome, request, failure);
    return false;
}

void CaptureCalls::release(std::uint64_t id) {
    if (Captures::is_pool(id)) return;
    {
        const Lock lock(state_.mutex);
        captures_.forget_capture(id);
        if (!caches_.has_capture(id)) return;
    }
    const DeviceStatus status = state_.backend.synchronize_device(state_.device);
    if (status != DeviceStatus::ok)
        state_.throw_error(status, "release_capture", "the wait for the device failed");
    const Lock lock(state_.mutex);
    detail::add(state_.totals.synchronizations, 1);
    free_.complete();
    caches_.end_capture(id);
}

void CaptureCalls::begin_pool(CapturePool pool, Filter takes_part) {
    const Lock lock(state_.mutex);
    captures_.begin_pool(pool, std::move(takes_part));
}

void CaptureCalls::end_pool(CapturePool pool) {
    const Lock lock(state_.mutex);
    if (const std::uint64_t number = captures_.end_pool(pool)) {
        // It may have been released before, and have been used since.
        if (!captures_.knows(number)) caches_.release_pool(number);
        return;
    }
    throw std::invalid_argument("tensorpool: " + state_.options.name +
                                ": end_capture_pool: found the pool (" +
                                std::to_string(pool.first) + ", " + std::to_string(pool.second) +
                                "), expected one that begin_capture_pool began");
}

void CaptureCalls::release_pool(CapturePool pool) noexcept {
    const Lock lock(state_.mutex);
    const std::uint64_t number = captures_.give_up_pool(pool);
    if (number != 0) caches_.release_pool(number);
}

}  // namespace tensorpool::device
