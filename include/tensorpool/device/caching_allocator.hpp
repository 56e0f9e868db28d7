#pragma once

/// @file
/// An allocator of device memory that reuses freed memory without calls to the device.

#include <string_view>

#include <tensorpool/device/allocator_events.hpp>
#include <tensorpool/device/caching_options.hpp>
#include <tensorpool/device/capture_pool.hpp>
#include <tensorpool/device/device_allocation_error.hpp>
#include <tensorpool/device/device_allocator.hpp>
#include <tensorpool/device/shared_block.hpp>
#include <tensorpool/device/sleep_content.hpp>

namespace tensorpool {

namespace device {
class CachingCore;
}

/// What identifies a block, and how often it was used: `buf_id` and `use_count` of PyTorch's Metal
/// allocator.
struct BlockIdentity {
    /// A number that no other block of the allocator ever has; 0 means no block.
    std::uint64_t number = 0;
    /// How often the block was allocated since it got its size, including the present allocation.
    std::uint64_t use_count = 0;
};

/// Cuts blocks from slabs of device memory, by stream. Memory that was freed on a stream serves
/// that stream again at once, in its order, without an event or a wait.
///
/// Sizes are rounded up to multiples of 512 B, and above 1 MiB by less than 1/64. A recently freed
/// block is reused for its exact rounded size under its stream's own short lock. Otherwise the
/// stream's free blocks are searched for the best fit. Sources: PyTorch's caching allocator for the
/// best fit by stream, and its Metal allocator for the order of giving memory back and the bound on
/// reuse.
class TENSORPOOL_API CachingAllocator final : public DeviceAllocator {
public:
    /// Makes an allocator for a device of the backend, which must outlive it. Throws
    /// std::invalid_argument, naming what was found and expected, for invalid options and for a
    /// device that does not exist.
    explicit CachingAllocator(Backend& backend, int device, const CachingOptions& options = {});
    /// Waits for the device and gives all memory back, blocks in use included.
    ~CachingAllocator() override;

    Device device() const noexcept override;
    void* allocate(std::size_t bytes, StreamHandle stream = nullptr) override;
    void* try_allocate(std::size_t bytes, StreamHandle stream = nullptr) noexcept override;
    void deallocate(void* block) noexcept override;
    void record_use(void* block, StreamHandle stream) override;
    void* host_pointer(void* block) const noexcept override;
    SourceDevice memory_device() const noexcept override;
    std::size_t usable_size(const void* block) const noexcept override;
    bool is_used_on(const void* block, StreamHandle stream) const noexcept override;
    /// Returns the identity of the block in use that begins at this address; zeros if there is
    /// none. A block keeps its number while it is freed and allocated again, until it is divided or
    /// merged with its neighbours. A scalar has the identity of the block that it shares.
    BlockIdentity identify(const void* block) const noexcept;
    DeviceStatistics statistics() const override;
    /// Gives back all free memory that no work uses, without waiting for the device, and returns
    /// the number of bytes given back. Gives nothing back while one of its streams is captured.
    std::size_t trim() noexcept override;

    /// Sets the limit of the memory held, as `CachingOptions::hard_limit` does.
    ///
    /// If the allocator holds more, it gives free memory back, without waiting for the device, and
    /// then gets no new memory until it holds less. A soft limit above the hard limit has no
    /// effect. Throws std::invalid_argument for a part that is not from 0 to 2.
    void set_hard_limit(double part);
    /// Sets the memory held from which on free memory is given back by age, as
    /// `CachingOptions::soft_limit` does. Throws std::invalid_argument for a part that is not from
    /// 0 to 2.
    void set_soft_limit(double part);

    /// Allocates a constant of 1 to 8 bytes for work submitted to `stream` from now on.
    ///
    /// 64 of them share one block of a slab, 8 bytes apart, so they are aligned to 8 only.
    /// `deallocate` frees them, and `record_use` accepts them. Throws std::invalid_argument for
    /// other sizes, and DeviceAllocationError if the memory is unavailable.
    void* allocate_scalar(std::size_t bytes, StreamHandle stream = nullptr);
    /// Allocates a constant of 1 to 8 bytes like `allocate_scalar(bytes, stream)`, and submits the
    /// writing of its value to the stream. `value` may change as soon as the call returns.
    ///
    /// Each run of equal bytes is one fill, so that no memory of the host has to outlive the call,
    /// and a captured stream writes the value at each launch. Throws std::invalid_argument for
    /// other sizes, DeviceAllocationError if the memory is unavailable, and DeviceError if the
    /// device fails otherwise.
    void* allocate_scalar(std::span<const std::byte> value, StreamHandle stream = nullptr);

    /// Allocates a block that `share` accepts, for work submitted to `stream` from now on.
    ///
    /// The block has a slab of its own, because other processes open whole slabs, so its size is
    /// rounded up to the device's granularity. When it was freed and its work is done, a later call
    /// gives its memory back to the device; it serves no other request. Throws DeviceError if
    /// `CachingOptions::exportable` is off, and DeviceAllocationError if the memory is unavailable,
    /// as it is while the stream is captured.
    void* allocate_shareable(std::size_t bytes, StreamHandle stream = nullptr);
    /// Returns what other processes need to open a block of `allocate_shareable` (`OpenedBlock`).
    ///
    /// Those that opened it own the memory too: it exists until the block was freed and all of them
    /// have closed it. Throws DeviceError for any other block, and if the device fails.
    SharedBlock share(void* block) const;

    /// Gives the memory back to the device, that of blocks in use included, until `wake`; only
    /// memory of graphs and memory reserved for them stays. Returns the number of bytes given back.
    /// Statistics count blocks in use as far as memory is held.
    ///
    /// The addresses of blocks stay valid, but no work may use them. Waits for the device. Blocks
    /// can be freed meanwhile; requests fail. A second call does nothing. Throws DeviceError with
    /// the reason, and std::bad_alloc, and then gives back only free memory: while a stream is
    /// captured, and if blocks in use lie in memory that could not come back at the same addresses,
    /// which are the slabs of devices without virtual memory, those of graphs, and shareable
    /// blocks. A simulated device that watches blocks reports those in use as freed too early.
    std::size_t sleep(SleepContent content);
    /// Takes memory from the device for all blocks in use, at the addresses that they had before
    /// `sleep`, with their content if it was kept. Does nothing for an allocator that does not
    /// sleep. Throws DeviceError if the memory is unavailable, and then still sleeps.
    void wake();

    /// Ends a stream that is about to be destroyed and gets no more work. Waits until its work is
    /// done. Its free blocks, and its blocks in use once they are freed, then belong to the default
    /// stream. Throws DeviceError if the device cannot wait.
    void end_stream(StreamHandle stream);

    /// Registers a function under a name. It is called for each AllocatorEvent until it is removed,
    /// and the report of a failed allocation shows its name. While any is registered, all calls
    /// take the slow path. Throws std::invalid_argument for an empty function, and for a name that
    /// is empty or registered already, and std::bad_alloc.
    void add_callback(std::string name, AllocatorCallback callback);
    /// Removes the callback of this name. Calls of it under way on other threads may still
    /// continue. Returns false for an unknown name.
    bool remove_callback(std::string_view name) noexcept;

    // Captures. Blocks allocated while their stream is captured come from memory of that capture
    // only and return to it, so a replay finds them at the same addresses. Captures that were begun
    // through the backend are known, also to other threads. Another capture of the program is
    // found when memory is searched on its stream; announce it, so that no block that was freed
    // before serves it.

    /// Allocates slabs of `bytes` bytes for later captures, for devices that cannot allocate during
    /// one. Throws DeviceAllocationError if the memory is unavailable.
    void reserve_for_capture(std::size_t bytes);
    /// Announces a capture that the program begins by other means. Until as many calls of
    /// `end_capture`, each allocation queries the backend whether its stream is captured.
    void begin_capture() noexcept;
    /// Announces the end of a capture.
    void end_capture() noexcept;
    /// Releases the memory of a capture (`CaptureState::id`) whose graph was destroyed. Waits for
    /// the device; the memory then serves all requests again. Does nothing for a number without
    /// blocks. Throws DeviceError if the device cannot wait.
    void release_capture(std::uint64_t id);

    // Memory that captures share, as in PyTorch, whose allocators have functions with these
    // meanings.

    /// Serves streams for which `takes_part(stream)` returns true from the memory of `pool` until
    /// `end_capture_pool`, and makes the pool if it does not exist. The latest pool that takes a
    /// stream serves it. `takes_part` is called on any thread, under a lock; it may neither throw
    /// nor call the allocator. Throws std::bad_alloc.
    void begin_capture_pool(CapturePool pool, std::function<bool(StreamHandle)> takes_part);
    /// Ends the latest `begin_capture_pool` of the pool. Its memory is kept. Throws
    /// std::invalid_argument if there is none.
    void end_capture_pool(CapturePool pool);
    /// Gives up the pool for one graph that used it, which was destroyed. After as many calls as
    /// there were of `begin_capture_pool`, its memory serves all requests again, once the device
    /// was waited for outside of captures. Does nothing for an unknown pool.
    void release_capture_pool(CapturePool pool) noexcept;

private:
    std::unique_ptr<device::CachingCore> core_;
};

}  // namespace tensorpool
