#pragma once

#include <tensorpool/device/pinned_allocator.hpp>

#include "device/caching/blocks/block_heap.hpp"
#include "device/owned_device_record.hpp"
#include "events/recorder_hooks.hpp"
#include "limits/budget_node.hpp"

/// The sizes of blocks and slabs of pinned memory, in bytes.

namespace tensorpool::device {

/// Blocks above 1 MiB begin and end at multiples of 16 KiB, the granularity of the block map.
constexpr std::size_t round_pinned(std::size_t bytes) noexcept {
    return base::align_up(bytes, bytes <= small_limit ? small_grain : large_grain);
}
static_assert(round_pinned(1) == 512 && round_pinned(513 * mib) == 513 * mib);
static_assert(round_pinned(small_limit + 1) == small_limit + 16 * kib);

inline Request pinned_request(std::size_t bytes) noexcept {
    return {bytes, round_pinned(std::min(bytes, max_bytes)),
            bytes <= small_limit ? Pool::small : Pool::large, 0};
}

/// The smallest slab for a request.
constexpr std::size_t min_slab(const Request& request) noexcept {
    return base::align_up(request.rounded, slab_step);
}
/// The preferred size of a slab: an eighth of what is held already. This keeps slabs few, because
/// the system takes long for each, and at most an eighth of the memory is idle.
constexpr std::size_t preferred_slab(const Request& request, std::size_t held,
                                     std::size_t largest) noexcept {
    if (request.pool == Pool::small) return small_slab_bytes;
    const std::size_t step = std::min(held / 8 / slab_step * slab_step, largest);
    return std::max(min_slab(request), step);
}

/// The implementation of PinnedAllocator, built from parts of the caching allocator. A freed block
/// that no stream uses is parked in the bins of the *lane* that it was allocated from. There are at
/// most 16 lanes, and each thread uses one. All slabs belong to the heap and serve all lanes. A
/// stream has a queue of blocks that wait for it.
///
/// Order of locks: the allocator's, then a lane's. No lock is taken under a lane's.
class PinnedCore {
public:
    PinnedCore(Backend& backend, int device, const PinnedOptions& options);
    ~PinnedCore();
    PinnedCore(const PinnedCore&) = delete;
    PinnedCore& operator=(const PinnedCore&) = delete;

    Device device() const noexcept { return {backend_.type(), device_}; }

    /// Returns a parked block for no stream, or nullptr if the slow path is needed.
    void* take_parked(std::size_t bytes) noexcept {
        if (events::is_recording()) [[unlikely]]
            return nullptr;
        Block* const block = lane_of_thread().take(round_pinned(bytes), bytes);
        return block != nullptr ? block->address : nullptr;
    }
    /// Parks the block. Returns false if the slow path is needed.
    bool park(void* address) noexcept {
        Block* const block = heap_.find(address);
        if (block == nullptr || block->address != address || events::is_recording()) [[unlikely]] {
            return false;
        }
        // Relaxed: `home` was set before the block's address was returned to the caller.
        StreamCache* const home = block->home.load(std::memory_order_relaxed);
        return home->put(*block) == StreamCache::Put::parked;
    }

    // Slow paths ---------------------------------------------------------------------------------

    /// On failure returns nullptr and fills in `failure`. Throws std::bad_alloc if there is no
    /// memory for records.
    void* allocate(std::size_t bytes, StreamHandle stream, DeviceAllocationFailure& failure);
    void deallocate(void* address) noexcept;

private:
    friend class tensorpool::PinnedAllocator;
    using Cause = DeviceAllocationFailure::Cause;

    /// The result of the search for a block.
    struct Outcome {
        Block* block = nullptr;
        DeviceStatus status = DeviceStatus::ok;
        Cause cause = Cause::own_use;
        std::chrono::nanoseconds waited{0};  // for copies that hold freed blocks back
    };

    StreamCache& lane_of_thread() noexcept;

    // REQUIRES, from here on: the mutex is held. It is released during calls to the system and
    // waits for streams.

    // pinned_core.cpp
    StreamCache& queue_of(StreamHandle stream);
    Block* take(StreamCache& lane, const Request& request, StreamHandle stream,
                DeviceAllocationFailure& failure);
    void add_use(Block& block, StreamHandle stream);
    void complete() noexcept;
    void flush() noexcept;

    // pinned_growth.cpp
    Outcome obtain(const Request& request);
    bool ask_holders(const Outcome& outcome, limits::BudgetRequest& budget) noexcept;
    bool copies_may_free(const Request& request) const noexcept;
    Outcome obtain_now(const Request& request);
    Block* take_free(const Request& request);
    Outcome grow(const Request& request);
    Outcome grow_by(const Request& request, std::size_t bytes);
    Outcome under_pressure(const Request& request, Outcome refused);
    bool may_grow(std::size_t bytes) const noexcept;
    std::size_t give_back() noexcept;
    void explain(const Outcome& outcome, const Request& request,
                 DeviceAllocationFailure& failure) noexcept;

    Backend& backend_;
    const int device_;
    const PinnedOptions options_;
    std::vector<std::unique_ptr<StreamCache>> lanes_;  // their number is a power of two

    alignas(64) mutable std::mutex mutex_;  // guards everything below
    std::condition_variable grown_;
    OwnedDeviceRecord record_;
    statistics::DeviceTotals& totals_;
    const limits::HeldBudget budget_;
    BlockHeap heap_;
    EventPool events_;
    DeferredFrees deferred_;
    StreamTable streams_;
    std::vector<std::unique_ptr<StreamCache>> queues_;  // one for each stream; nothing is parked
    StreamCache slabs_;                                 // home of all slabs and their free blocks
    std::size_t limit_;                                 // in bytes; 0: none
    std::size_t growing_bytes_ = 0;                     // being requested from the system
    bool growing_[pool_count] = {};
};

}  // namespace tensorpool::device
