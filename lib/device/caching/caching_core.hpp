#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <tensorpool/device/caching_options.hpp>
#include <tensorpool/device/device_allocation_error.hpp>

#include "device/caching/allocator_watch.hpp"
#include "device/caching/block_heap.hpp"
#include "device/caching/deferred_frees.hpp"
#include "device/caching/event_pool.hpp"
#include "device/caching/scalar_pages.hpp"
#include "device/caching/stream_cache.hpp"
#include "device/caching/stream_table.hpp"
#include "device/device_place.hpp"
#include "statistics/recorder_hooks.hpp"

namespace tensorpool::device {

/// What stands behind a CachingAllocator: the fast path through a stream's bins, and behind it one
/// lock under which blocks are found, split and joined. Calls to the device that take long, and
/// everybody's callbacks, are made without that lock.
///
/// Locks: the allocator's, then a stream's. Under a stream's nothing else is taken.
class CachingCore {
public:
    CachingCore(Backend& backend, int device, const CachingOptions& options);
    ~CachingCore();
    CachingCore(const CachingCore&) = delete;
    CachingCore& operator=(const CachingCore&) = delete;

    Device device() const noexcept { return {backend_.type(), device_}; }

    /// A block parked by its stream; nullptr where the slow path has to be taken.
    void* take_parked(std::size_t bytes, StreamHandle stream) noexcept {
        if (is_gated()) [[unlikely]]
            return take_parked_unless_captured(bytes, stream);
        StreamCache* const cache = streams_.find(stream);
        if (cache == nullptr) [[unlikely]]
            return nullptr;
        Block* const block = cache->take(round_bytes(bytes), bytes);
        return block != nullptr ? block->address : nullptr;
    }
    /// False where the slow path has to be taken.
    bool park(void* address) noexcept {
        Block* const block = heap_.find(address);
        if (block == nullptr || block->address != address || is_watched()) [[unlikely]] {
            return false;
        }
        // Relaxed: it was the block's home before its address became known, or `put` says that it
        // is no more.
        StreamCache* const home = block->home.load(std::memory_order_relaxed);
        return home->put(*block) == StreamCache::Put::parked;
    }

    // Slow paths ---------------------------------------------------------------------------------

    /// Where it fails: nullptr and, if wanted, why. Throws std::bad_alloc where records are
    /// missing.
    void* allocate(std::size_t bytes, StreamHandle stream, DeviceAllocationFailure* failure);
    void* allocate_or_throw(std::size_t bytes, StreamHandle stream);
    void* allocate_scalar(std::size_t bytes, StreamHandle stream, DeviceAllocationFailure* failure);
    void deallocate(void* address) noexcept;
    void record_use(void* address, StreamHandle stream);
    std::size_t usable_size(const void* address) const noexcept;
    bool is_used_on(const void* address, StreamHandle stream) const noexcept;
    DeviceStatistics statistics() const noexcept { return place_.figures(); }
    std::size_t trim() noexcept;
    void end_stream(StreamHandle stream);

    std::uint64_t add_callback(AllocatorCallback callback);
    bool remove_callback(std::uint64_t number) noexcept;

    bool reserve_for_capture(std::size_t bytes, DeviceAllocationFailure& failure);
    void begin_capture() noexcept;
    void end_capture() noexcept;
    void release_capture(std::uint64_t id);

    /// What a failure throws.
    [[noreturn]] void refuse(const DeviceAllocationFailure& failure);

private:
    using Lock = std::unique_lock<std::mutex>;
    using Cause = DeviceAllocationFailure::Cause;

    /// Why the fast path is closed.
    enum Gate : unsigned { watched = 1, captures = 2 };
    bool is_gated() const noexcept {
        // Relaxed: who closes it sees all calls that begin after that.
        return gate_.load(std::memory_order_relaxed) != 0 || statistics::is_recording();
    }
    bool is_watched() const noexcept {
        return (gate_.load(std::memory_order_relaxed) & watched) != 0 || statistics::is_recording();
    }
    void set_gate() noexcept;
    void end_slabs(StreamCache& cache) noexcept;
    void end_range(Slab& slab) noexcept;

    /// What came of looking for a block.
    struct Outcome {
        Block* block = nullptr;
        AllocatorWatch::Memory memory = AllocatorWatch::Memory::recycled;
        DeviceStatus status = DeviceStatus::ok;
        Cause cause = Cause::own_use;
    };
    static Outcome failed(DeviceStatus status, Cause cause) noexcept {
        return {nullptr, AllocatorWatch::Memory::recycled, status, cause};
    }

    // core_allocate.cpp
    Request request_of(std::size_t bytes, const StreamCache& cache) const noexcept;
    bool is_too_large(std::size_t bytes) const noexcept;
    Block* take_free(StreamCache& cache, const Request& request);
    Outcome obtain(StreamCache& cache, const Request& request, Lock& lock);
    Outcome under_pressure(StreamCache& cache, const Request& request, Outcome refused, Lock& lock);
    void complete(std::uint64_t capture) noexcept;
    std::size_t flush(StreamCache& cache) noexcept;
    std::size_t put_back_all(StreamCache& cache, Block* block) noexcept;
    std::size_t flush_all() noexcept;
    std::size_t free_bytes() const noexcept;

    // core_growth.cpp
    Outcome grow(StreamCache& cache, const Request& request, Lock& lock);
    Outcome grow_by_slab(StreamCache& cache, const Request& request, Lock& lock);
    Outcome grow_by_bytes(StreamCache& cache, const Request& request, std::size_t bytes,
                          Lock& lock);
    void keep_slab(StreamCache& cache, Pool pool, void* memory, std::size_t bytes, Lock& lock);
    bool take_reserved(StreamCache& cache, const Request& request);
    bool may_grow(std::size_t bytes) const noexcept;
    std::size_t goal(const Request& request, unsigned sixteenths) const noexcept;
    bool is_expandable(const StreamCache& cache) const noexcept {
        return granule_ != 0 && cache.capture() == 0;
    }

    // core_expandable.cpp
    Outcome grow_in_place(StreamCache& cache, const Request& request, Lock& lock);
    BlockHeap::Place find_place(StreamCache& cache, const Request& request, Lock& lock,
                                DeviceStatus& status);
    Slab* take_empty_range(StreamCache& cache, const Request& request) noexcept;
    Slab* add_range(StreamCache& cache, const Request& request, Lock& lock, DeviceStatus& status);
    Outcome map_place(const BlockHeap::Place& place, const Request& request, bool all, Lock& lock);
    struct Granules;
    std::size_t bytes_to_move(std::size_t missing, const Request& request, bool all) const noexcept;
    std::vector<Block*> take_idle_granules(StreamCache& first, std::size_t bytes);
    DeviceStatus move_granules(Granules& granules) noexcept;
    void unmap(Granules& granules) noexcept;
    DeviceStatus map_missing(Granules& granules) noexcept;
    void undo(Granules& granules) noexcept;
    void settle(const Granules& granules) noexcept;

    // core_give_back.cpp
    enum class Which : std::uint8_t { all, aged, whole_slabs };
    void look_at_marks(StreamCache& cache) noexcept;
    bool is_idle(const StreamCache& cache, const Block& block) const noexcept;
    void collect_idle(StreamCache& cache, Which which, std::vector<Block*>& found) const;
    std::size_t give_back(Which which, std::size_t bytes, Lock& lock);
    std::size_t give_back(std::vector<Block*>& blocks, Lock& lock) noexcept;
    void take_out(std::vector<Block*>& blocks, std::size_t bytes) noexcept;
    DeviceStatus return_to_device(Block& block) noexcept;
    void keep_soft_limit(std::size_t growth, Lock& lock);
    std::size_t synchronize(Lock& lock) noexcept;
    void settle_memory(Lock& lock) noexcept;
    void wait_for_returns(Lock& lock);

    // core_streams.cpp
    void* take_parked_unless_captured(std::size_t bytes, StreamHandle stream) noexcept;
    std::uint64_t capture_of(StreamHandle stream) const noexcept;
    bool is_any_captured() const noexcept;
    Outcome reserve(const Request& request, Lock& lock);
    StreamCache& cache_of(StreamHandle stream, std::uint64_t capture);
    StreamCache& new_cache(StreamHandle stream, std::uint64_t capture);
    void move_all(StreamCache& from, StreamCache& to) noexcept;
    void retire(StreamCache& cache) noexcept;
    void end_captures_of(StreamHandle stream) noexcept;
    void synchronize_stream(StreamHandle stream, const char* call);

    // core_free.cpp
    Block& block_in_use(void* address, const char* call) const;
    void park_again(Block& block) noexcept;
    [[noreturn]] void refuse_free(const void* address, const Block* block) const noexcept;

    // core_scalars.cpp
    void* take_scalar(StreamCache& cache, std::size_t bytes) noexcept;
    void open_page(StreamCache& cache, Block& block, ScalarPage& page) noexcept;
    void close_page(Block& block) noexcept;
    void free_scalar(Block& block, void* address, Lock& lock) noexcept;
    void end_page(Block& block) noexcept;
    void end_empty_pages(StreamCache& cache) noexcept;
    static bool has_scalar(const Block& block, const void* address) noexcept;

    // core_failure.cpp
    void explain(const Outcome& outcome, const Request& request, DeviceAllocationFailure& failure);
    void count_holders(DeviceAllocationFailure& failure) const noexcept;

    Backend& backend_;
    const int device_;
    const CachingOptions options_;
    const DeviceAbilities abilities_;
    const std::size_t granule_;  // 0: slabs do not grow
    std::size_t total_bytes_ = 0;
    std::size_t hard_limit_ = 0;  // 0: none
    std::size_t soft_limit_ = 0;
    StreamTable streams_;
    alignas(64) std::atomic<unsigned> gate_ = 0;

    alignas(64) mutable std::mutex mutex_;  // of all that follows
    std::condition_variable grown_;
    DevicePlace place_;
    statistics::DeviceTotals& totals_;
    AllocatorWatch watch_;
    BlockHeap heap_;
    EventPool events_;
    DeferredFrees deferred_;
    ScalarPages scalars_;
    std::vector<std::unique_ptr<StreamCache>> caches_;
    std::vector<StreamCache*> spare_caches_;  // of captures that were released
    StreamCache reserved_;                    // holds slabs for captures to come
    std::size_t growing_bytes_ = 0;           // asked of the device just now
    std::size_t returns_ = 0;                 // threads that give memory back just now
    unsigned announced_captures_ = 0;
};

}  // namespace tensorpool::device
