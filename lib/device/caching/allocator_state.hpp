#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tensorpool/device/caching_options.hpp>
#include <tensorpool/device/device_allocation_error.hpp>

#include "device/caching/allocator_watch.hpp"
#include "device/caching/blocks/block_heap.hpp"
#include "device/caching/streams/stream_cache.hpp"
#include "device/caching/streams/stream_table.hpp"
#include "device/deferral/deferred_frees.hpp"
#include "device/deferral/event_pool.hpp"
#include "device/owned_device_record.hpp"
#include "device/unlocked.hpp"
#include "statistics/recorder_hooks.hpp"

namespace tensorpool::device {

/// What came of looking for a block.
struct Outcome {
    using Cause = DeviceAllocationFailure::Cause;

    Block* block = nullptr;
    AllocatorWatch::Memory memory = AllocatorWatch::Memory::recycled;
    DeviceStatus status = DeviceStatus::ok;
    Cause cause = Cause::own_use;

    static Outcome failed(DeviceStatus status, Cause cause) noexcept {
        return {nullptr, AllocatorWatch::Memory::recycled, status, cause};
    }
    /// Of a call to the device that failed.
    static Cause cause_of(DeviceStatus status) noexcept {
        return status == DeviceStatus::in_capture ? Cause::capture : Cause::own_use;
    }
    /// Whether giving memory back may help.
    bool lacks_memory() const noexcept {
        return block == nullptr && status == DeviceStatus::out_of_memory;
    }
};

/// The device's index. Throws std::invalid_argument, which names the allocator, the option, what
/// was found and what was expected.
int validated(Backend& backend, int device, const CachingOptions& options);

/// What the parts of one caching allocator share: its device, limits and counters, and the blocks
/// under its lock. It decides nothing; the parts do.
///
/// Locks: this one, then a stream's. Under a stream's nothing else is taken. The parts' functions
/// REQUIRE the lock unless they say otherwise; calls to the device that take long, and callbacks,
/// are made in the scope of an `Unlocked`.
struct AllocatorState {
    AllocatorState(Backend& backend, int device, const CachingOptions& options);
    AllocatorState(const AllocatorState&) = delete;
    AllocatorState& operator=(const AllocatorState&) = delete;

    Device name_of_device() const noexcept { return {backend.type(), device}; }
    /// "tensorpool: NAME on DEVICE: CALL: WHAT: STATUS: what the backend says", as an exception.
    [[noreturn]] void throw_error(DeviceStatus status, const char* call, const char* what) const;

    /// Why the fast path is closed.
    enum Gate : unsigned { watched = 1, captures = 2 };
    bool is_gated() const noexcept {
        // Relaxed: the thread that closes it sees all calls that begin after that.
        return gate.load(std::memory_order_relaxed) != 0 || statistics::is_recording();
    }
    bool is_watched() const noexcept {
        return (gate.load(std::memory_order_relaxed) & watched) != 0 || statistics::is_recording();
    }

    /// Held by the allocator, and asked of the device just now.
    std::size_t capacity() const noexcept {
        return static_cast<std::size_t>(totals.capacity_bytes.load(std::memory_order_relaxed)) +
               growing_bytes;
    }
    bool may_grow(std::size_t bytes) const noexcept {
        return hard_limit == 0 || (capacity() <= hard_limit && bytes <= hard_limit - capacity());
    }
    /// So many bytes may be held for a request without giving any back: the most that was ever
    /// held, and `sixteenths` of it more.
    std::size_t goal(const Request& request, unsigned sixteenths) const noexcept;
    bool is_expandable(const StreamCache& cache) const noexcept {
        return granule != 0 && cache.capture() == 0;
    }

    Backend& backend;
    const int device;
    const CachingOptions options;
    const DeviceAbilities abilities;
    const std::size_t granule;  // 0: slabs do not grow
    std::size_t total_bytes = 0;
    std::size_t hard_limit = 0;  // 0: none
    std::size_t soft_limit = 0;
    StreamTable streams;
    alignas(64) std::atomic<unsigned> gate = 0;

    alignas(64) mutable std::mutex mutex;  // of all that follows
    std::condition_variable grown;         // a growth ended, or memory went back to the device
    OwnedDeviceRecord place;
    statistics::DeviceTotals& totals;
    AllocatorWatch watch;
    BlockHeap heap;
    EventPool events;
    DeferredFrees deferred;
    std::vector<std::unique_ptr<StreamCache>> caches;
    std::size_t growing_bytes = 0;  // asked of the device just now
    std::size_t returns = 0;        // threads that give memory back just now
};

}  // namespace tensorpool::device
