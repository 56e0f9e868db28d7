#pragma once

/// @file
/// What all allocators of device memory, of pinned and of host memory have in common.

#include <cstddef>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device_statistics.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// Hands out memory of one device for work on a stream. What was handed out never moves. Any thread
/// may call anything; a block may be freed on another thread than it was made on.
class TENSORPOOL_API DeviceAllocator {
public:
    DeviceAllocator() noexcept = default;
    virtual ~DeviceAllocator();
    DeviceAllocator(const DeviceAllocator&) = delete;
    DeviceAllocator& operator=(const DeviceAllocator&) = delete;

    /// The device whose work the memory is for. Of pinned and host memory too.
    virtual Device device() const noexcept = 0;

    /// Memory for work given to `stream` (nullptr: the default stream) from now on: `bytes`,
    /// aligned to 256 at least, of any content. nullptr for 0 bytes. Throws DeviceAllocationError,
    /// or DeviceError where something else than memory was the matter.
    virtual void* allocate(std::size_t bytes, StreamHandle stream = nullptr) = 0;
    /// The same, but nullptr where it would throw.
    virtual void* try_allocate(std::size_t bytes, StreamHandle stream = nullptr) noexcept = 0;
    /// Work with it that was given to its stream, and to those of `record_use`, may still be under
    /// way: nobody else gets the memory before it may be used. nullptr does nothing. An address
    /// that it did not hand out, or that was freed, ends the process with a message that names it.
    virtual void deallocate(void* block) noexcept = 0;
    /// Work given to `stream` so far, or until the block is freed, uses a block that was made for
    /// another stream. Throws DeviceError for an address that is no block in use.
    virtual void record_use(void* block, StreamHandle stream) = 0;

    /// Bytes of the block at this address, rounding included; 0 where none in use begins.
    virtual std::size_t usable_size(const void* block) const noexcept = 0;

    /// Whether work on this stream uses the block in use at this address: it was made for it, or
    /// told of it by `record_use`, and the stream has not ended since.
    virtual bool is_used_on(const void* block, StreamHandle stream) const noexcept = 0;

    virtual DeviceStatistics statistics() const = 0;
    /// Gives back all that is free and that no work uses; bytes given back. Waits for no device.
    virtual std::size_t trim() noexcept = 0;
};

}  // namespace tensorpool
