#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include <tensorpool/device/device_allocation_error.hpp>
#include <tensorpool/device/pinned_options.hpp>

#include "device/caching/blocks/block_heap.hpp"
#include "device/caching/streams/stream_cache.hpp"
#include "device/caching/streams/stream_table.hpp"
#include "device/deferral/deferred_frees.hpp"
#include "device/deferral/event_pool.hpp"
#include "device/owned_device_record.hpp"
#include "device/pinned/pinned_sizes.hpp"
#include "device/unlocked.hpp"
#include "statistics/recorder_hooks.hpp"

namespace tensorpool::device {

/// What stands behind a PinnedAllocator, of the parts of the caching allocator: a block that no
/// stream uses is parked, when it is freed, in the bins of the *lane* that it was handed out from;
/// a thread has one lane of a few. All slabs are the heap's, for all lanes; a stream has a queue of
/// blocks that wait for it.
///
/// Locks: the allocator's, then a lane's. Under a lane's nothing else is taken.
class PinnedCore {
public:
    PinnedCore(Backend& backend, int device, const PinnedOptions& options);
    ~PinnedCore();
    PinnedCore(const PinnedCore&) = delete;
    PinnedCore& operator=(const PinnedCore&) = delete;

    Device device() const noexcept { return {backend_.type(), device_}; }

    /// A parked block for no stream; nullptr where the slow path has to be taken.
    void* take_parked(std::size_t bytes) noexcept {
        if (statistics::is_recording()) [[unlikely]]
            return nullptr;
        Block* const block = lane_of_thread().take(round_pinned(bytes), bytes);
        return block != nullptr ? block->address : nullptr;
    }
    /// False where the slow path has to be taken.
    bool park(void* address) noexcept {
        Block* const block = heap_.find(address);
        if (block == nullptr || block->address != address || statistics::is_recording())
            [[unlikely]] {
            return false;
        }
        // Relaxed: it was the block's home before its address became known.
        StreamCache* const home = block->home.load(std::memory_order_relaxed);
        return home->put(*block) == StreamCache::Put::parked;
    }

    // Slow paths ---------------------------------------------------------------------------------

    /// Where it fails: nullptr and why. Throws std::bad_alloc where records are missing.
    void* allocate(std::size_t bytes, StreamHandle stream, DeviceAllocationFailure& failure);
    void deallocate(void* address) noexcept;
    void record_use(void* address, StreamHandle stream);
    std::size_t usable_size(const void* address) const noexcept;
    bool is_used_on(const void* address, StreamHandle stream) const noexcept;
    DeviceStatistics statistics() const noexcept { return place_.figures(); }
    std::size_t trim() noexcept;
    void end_stream(StreamHandle stream);
    /// What a failure throws.
    [[noreturn]] void refuse(const DeviceAllocationFailure& failure);

private:
    using Cause = DeviceAllocationFailure::Cause;

    /// What came of looking for a block.
    struct Outcome {
        Block* block = nullptr;
        DeviceStatus status = DeviceStatus::ok;
        Cause cause = Cause::own_use;
    };

    StreamCache& lane_of_thread() noexcept;

    // REQUIRES, from here on: the mutex is held. It is let go of where the system or a stream is
    // waited for.

    // pinned_core.cpp
    StreamCache& queue_of(StreamHandle stream);
    Block* take(StreamCache& lane, const Request& request, StreamHandle stream,
                DeviceAllocationFailure& failure);
    void add_use(Block& block, StreamHandle stream);
    void complete() noexcept;
    void flush() noexcept;
    Block& block_in_use(void* address, const char* call) const;
    void forget(const StreamQueue& queue) noexcept;
    void synchronize_stream(StreamHandle stream);

    // pinned_growth.cpp
    Outcome obtain(const Request& request);
    Block* take_free(const Request& request);
    Outcome grow(const Request& request);
    Outcome grow_by(const Request& request, std::size_t bytes);
    Outcome under_pressure(const Request& request, Outcome refused);
    bool may_grow(std::size_t bytes) const noexcept;
    std::size_t give_back() noexcept;
    Slab* take_free_slab() noexcept;
    void explain(const Outcome& outcome, const Request& request,
                 DeviceAllocationFailure& failure) noexcept;

    Backend& backend_;
    const int device_;
    const PinnedOptions options_;
    std::vector<std::unique_ptr<StreamCache>> lanes_;  // as many as a power of two

    alignas(64) mutable std::mutex mutex_;  // of all that follows
    std::condition_variable grown_;
    OwnedDeviceRecord place_;
    statistics::DeviceTotals& totals_;
    BlockHeap heap_;
    EventPool events_;
    DeferredFrees deferred_;
    StreamTable streams_;
    std::vector<std::unique_ptr<StreamCache>> queues_;  // of streams, nothing is parked there
    StreamCache slabs_;                                 // home of all slabs and their free blocks
    std::size_t growing_bytes_ = 0;                     // asked of the system just now
    bool growing_[pool_count] = {};
};

}  // namespace tensorpool::device
