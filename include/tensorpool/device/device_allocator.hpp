#pragma once

/// @file
/// The interface of all allocators of device memory, pinned memory and host memory.

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device_statistics.hpp>
#include <tensorpool/memory_source.hpp>

namespace tensorpool {

/// Allocates memory of one device for work on a stream. Blocks never move. Any thread may call any
/// function, and may free blocks that other threads allocated.
class TENSORPOOL_API DeviceAllocator {
public:
    DeviceAllocator() noexcept = default;
    virtual ~DeviceAllocator();
    DeviceAllocator(const DeviceAllocator&) = delete;
    DeviceAllocator& operator=(const DeviceAllocator&) = delete;

    /// Returns the device whose work the memory is for, also for pinned and host memory.
    virtual Device device() const noexcept = 0;

    /// Allocates `bytes` bytes for work submitted to `stream` (nullptr: the default stream) from
    /// now on, aligned to at least 256. The content is undefined. Returns nullptr for 0. Throws
    /// DeviceAllocationError if the memory is unavailable, and DeviceError if the device fails
    /// otherwise.
    virtual void* allocate(std::size_t bytes, StreamHandle stream = nullptr) = 0;
    /// Allocates `bytes` bytes for work submitted to `stream` (nullptr: the default stream) from
    /// now on, aligned to at least 256. The content is undefined. Returns nullptr for 0 and if the
    /// request cannot be met. Optional; default: what `allocate` returns.
    virtual void* try_allocate(std::size_t bytes, StreamHandle stream = nullptr) noexcept;
    /// Frees a block; nullptr is ignored.
    ///
    /// Work submitted to its stream before, and to the streams of `record_use`, may still be under
    /// way: the memory is not reused before that is safe. An address that the allocator did not
    /// return, or that was freed already, ends the process with a message that names it.
    virtual void deallocate(void* block) noexcept = 0;
    /// Records that work submitted to `stream`, so far or until the block is freed, uses a block
    /// that was allocated for another stream. The stream must exist until the block is freed, or
    /// until `end_stream`. Throws DeviceError for an address that is no block in use.
    virtual void record_use(void* block, StreamHandle stream) = 0;

    /// Allocates a block for a handle, for work submitted to `stream` (nullptr: the default stream)
    /// from now on: PooledAllocation(allocator, bytes, stream) calls it. Returns none for 0. Throws
    /// what `allocate` throws. The end of the handle, on any thread, frees the block as
    /// `deallocate` does.
    HeldBlock hold(std::size_t bytes, StreamHandle stream = nullptr);

    /// Returns the usable bytes of the block that begins at this address, including rounding; 0 if
    /// no block in use begins there.
    virtual std::size_t usable_size(const void* block) const noexcept = 0;

    /// Returns whether work on this stream uses the block in use at this address: the block was
    /// allocated for the stream or recorded by `record_use`, and the stream has not ended since.
    virtual bool is_used_on(const void* block, StreamHandle stream) const noexcept = 0;

    /// Returns the allocator's statistics.
    virtual DeviceStatistics statistics() const = 0;
    /// Gives back all free memory that no work uses, without waiting for the device. Returns the
    /// number of bytes given back.
    virtual std::size_t trim() noexcept = 0;

    /// Returns the address at which the host can access a block in use; nullptr if it cannot.
    /// Optional; default: the block if `device()` is the CPU, otherwise nullptr.
    virtual void* host_pointer(void* block) const noexcept;
    /// Returns the device that the memory belongs to, as DLPack describes it. Optional; default:
    /// the memory of `device()` itself.
    virtual SourceDevice memory_device() const noexcept;
};

}  // namespace tensorpool
