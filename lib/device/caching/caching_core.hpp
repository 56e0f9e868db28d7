#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include <tensorpool/device/caching_allocator.hpp>

#include "device/caching/allocator_state.hpp"
#include "device/caching/block_search.hpp"
#include "device/caching/capture_calls.hpp"
#include "device/caching/free_blocks.hpp"
#include "device/caching/growth.hpp"
#include "device/caching/reclaim.hpp"
#include "device/caching/scalars.hpp"
#include "device/caching/sleep.hpp"
#include "device/caching/streams/captures.hpp"
#include "device/caching/streams/stream_caches.hpp"
#include "device/dlpack_devices.hpp"

namespace tensorpool::device {

/// The implementation of CachingAllocator: a fast path through a stream's bins, and behind it one
/// lock under which the parts find, make and release blocks. Any thread.
class CachingCore {
public:
    CachingCore(Backend& backend, int device, const CachingOptions& options);
    ~CachingCore();
    CachingCore(const CachingCore&) = delete;
    CachingCore& operator=(const CachingCore&) = delete;

    Device device() const noexcept { return state_.name_of_device(); }

    /// The key of the stream, by which all other functions know it.
    StreamHandle key_of(StreamHandle stream) const noexcept { return state_.calls.key_of(stream); }

    /// Returns a block that its stream parked, or nullptr if the slow path is needed.
    void* take_parked(std::size_t bytes, StreamHandle stream) noexcept {
        if (state_.is_gated()) [[unlikely]]
            return take_parked_unless_captured(bytes, stream);
        StreamCache* const cache = state_.streams.find(stream);
        if (cache == nullptr) [[unlikely]]
            return nullptr;
        Block* const block = cache->take(round_bytes(bytes), bytes);
        return block != nullptr ? block->address : nullptr;
    }
    /// Parks the block. Returns false if the slow path is needed.
    bool park(void* address) noexcept {
        Block* const block = state_.heap.find(address);
        if (block == nullptr || block->address != address || state_.is_watched()) [[unlikely]] {
            return false;
        }
        // Relaxed: `home` was set before the block's address was returned to the caller. If it has
        // changed since, `put` notices under the stream's lock.
        StreamCache* const home = block->home.load(std::memory_order_relaxed);
        return home->put(*block) == StreamCache::Put::parked;
    }

    /// Whether a block has a slab of its own, which other processes can open.
    enum class Shareable : bool { no, yes };

    // Slow paths ---------------------------------------------------------------------------------

    /// On failure returns nullptr and, if `failure` is not null, fills it in. Throws std::bad_alloc
    /// if there is no memory for records.
    void* allocate(std::size_t bytes, StreamHandle stream, DeviceAllocationFailure* failure,
                   Shareable shareable = Shareable::no);
    void* allocate_or_throw(std::size_t bytes, StreamHandle stream,
                            Shareable shareable = Shareable::no);
    void* allocate_shareable(std::size_t bytes, StreamHandle stream);
    SharedBlock share(void* address) const;
    void* allocate_scalar(std::size_t bytes, StreamHandle stream, DeviceAllocationFailure* failure);
    /// Submits fills that write the value to the stream. Throws DeviceError.
    void write(void* address, std::span<const std::byte> value, StreamHandle stream);
    void deallocate(void* address) noexcept;
    void record_use(void* address, StreamHandle stream);
    void* host_pointer(void* address) const noexcept {
        return state_.backend.host_pointer(state_.device, address);
    }
    SourceDevice memory_device() const noexcept {
        SourceDevice device = dlpack_device(state_.name_of_device());
        const bool is_managed = state_.options.storage == StorageKind::managed;
        if (device.type == DlpackDeviceType::cuda && is_managed) {
            device.type = DlpackDeviceType::cuda_managed;
        }
        return device;
    }
    std::size_t usable_size(const void* address) const noexcept;
    bool is_used_on(const void* address, StreamHandle stream) const noexcept;
    BlockIdentity identify(const void* address) const noexcept;
    DeviceStatistics statistics() const noexcept { return state_.record.statistics(); }
    std::size_t trim() noexcept;
    void set_hard_limit(double part);
    void set_soft_limit(double part);
    void end_stream(StreamHandle stream);

    void add_callback(std::string name, AllocatorCallback callback);
    bool remove_callback(std::string_view name) noexcept;

    CaptureCalls& captures() noexcept { return capture_calls_; }

    std::size_t sleep(SleepContent content);
    void wake();

    /// Throws the exception for a failure.
    [[noreturn]] void refuse(const DeviceAllocationFailure& failure);

private:
    using Lock = std::unique_lock<std::mutex>;

    void* take_parked_unless_captured(std::size_t bytes, StreamHandle stream) noexcept;
    std::size_t give_back(std::size_t bytes) noexcept;

    AllocatorState state_;
    Scalars scalars_{state_};
    FreeBlocks free_{state_, scalars_};
    Captures captures_{state_};
    StreamCaches caches_{state_, free_, scalars_};
    Reclaim reclaim_{state_, free_, captures_};
    Growth growth_{state_, reclaim_, captures_};
    Sleep sleep_{state_, free_, captures_, reclaim_};
    BlockSearch search_{state_, free_, captures_, caches_, reclaim_, growth_};
    CaptureCalls capture_calls_{state_, free_, captures_, caches_, search_};
};

}  // namespace tensorpool::device
