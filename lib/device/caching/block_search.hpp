#pragma once

#include <cstddef>

#include "device/caching/allocator_state.hpp"
#include "device/caching/free_blocks.hpp"
#include "device/caching/growth.hpp"
#include "device/caching/reclaim.hpp"
#include "device/caching/streams/captures.hpp"
#include "device/caching/streams/stream_caches.hpp"

namespace tensorpool::device {

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
