#pragma once

#include "device/caching/growth.hpp"
#include "device/caching/streams/stream_caches.hpp"

namespace tensorpool::device {

/// The steps taken before a request fails, cheapest first. One object serves one request. Each step
/// taken is an entry on the timeline, with the bytes that it freed.
class Pressure {
public:
    Pressure(AllocatorState& state, FreeBlocks& free, Growth& growth, Reclaim& reclaim,
             StreamCache& cache, const Request& request) noexcept
        : state_(state),
          free_(free),
          growth_(growth),
          reclaim_(reclaim),
          cache_(cache),
          request_(request) {}

    /// Returns the outcome of the steps, after the failure `refused`. Throws std::bad_alloc.
    Outcome relieve(const Outcome& refused);

private:
    /// What follows a step: a search of the sets, and a growth if it may help.
    enum class Retry { search, grow, grow_if_freed, grow_if_expandable };
    struct Step {
        std::size_t (Pressure::*take)();
        Retry retry;
    };
    static const Step steps[];

    std::size_t complete();
    std::size_t coalesce();
    std::size_t give_aged_back();
    std::size_t call_back();
    std::size_t give_all_back();
    std::size_t synchronize();
    bool may_grow_after(Retry retry, std::size_t freed) const noexcept;
    bool is_over(bool may_grow);

    AllocatorState& state_;
    FreeBlocks& free_;
    Growth& growth_;
    Reclaim& reclaim_;
    StreamCache& cache_;
    const Request& request_;
    Outcome outcome_;
};

/// Finds a block for a request: in the sets, in memory of the device, or after memory pressure was
/// relieved.
class BlockSearch {
public:
    BlockSearch(AllocatorState& state, FreeBlocks& free, Captures& captures, StreamCaches& caches,
                Reclaim& reclaim, Growth& growth) noexcept
        : state_(state),
          free_(free),
          captures_(captures),
          caches_(caches),
          reclaim_(reclaim),
          growth_(growth) {}

    Request request_of(std::size_t bytes, const StreamCache& cache) const noexcept;
    /// Returns a request for a block that has a slab of its own.
    Request shareable_request_of(std::size_t bytes) const noexcept;
    /// Returns what a request charges to budgets.
    static limits::BudgetRequest new_budget_request() noexcept;

    /// Returns a block that belongs to the caller and is counted. Throws std::bad_alloc.
    Outcome find(StreamCache& cache, const Request& request);
    /// Returns a block that is not counted yet. Throws std::bad_alloc.
    Outcome obtain(StreamCache& cache, const Request& request);
    /// Allocates a slab for later captures. The outcome has no block.
    Outcome reserve(const Request& request);
    /// Asks holders, without the lock, if a budget refused the request. Returns whether it may
    /// succeed now.
    bool may_retry(const Outcome& outcome, limits::BudgetRequest& budget) const noexcept;
    /// Fills in the failure. Memory counts as free if it is in the sets or parked by a stream.
    void explain(const Outcome& outcome, const Request& request, DeviceAllocationFailure& failure);

private:
    bool is_too_large(std::size_t bytes) const noexcept;
    bool take_over_dead(StreamCache& cache);

    AllocatorState& state_;
    FreeBlocks& free_;
    Captures& captures_;
    StreamCaches& caches_;
    Reclaim& reclaim_;
    Growth& growth_;
};

}  // namespace tensorpool::device
