#pragma once

/// @file
/// A handle to device memory that several handles share.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// A shared handle to a block, which is freed with its last handle, on whichever thread that is
/// destroyed.
///
/// As with a shared pointer, one thread at a time may use a handle, and several threads may use
/// several handles of one block. Operations on the memory are work of its stream, in the order of
/// the calls. They throw DeviceError if the device fails. A handle may outlive its runtime.
class TENSORPOOL_API DeviceMemory {
public:
    /// Makes a handle that owns nothing and has size 0.
    DeviceMemory() noexcept = default;
    /// Allocates `bytes` bytes of the current device for work on `stream`, by default the current
    /// stream; owns nothing for 0. Throws DeviceAllocationError if the memory is unavailable, and
    /// DeviceError if the device fails otherwise.
    explicit DeviceMemory(std::size_t bytes, std::optional<StreamHandle> stream = {});
    /// Allocates `bytes` bytes of the runtime's device for work on `stream`, by default the current
    /// stream; owns nothing for 0. Throws DeviceAllocationError if the memory is unavailable, and
    /// DeviceError if the device fails otherwise.
    DeviceMemory(Runtime& runtime, std::size_t bytes, std::optional<StreamHandle> stream = {},
                 MemoryKind kind = MemoryKind::device);
    /// Takes over the block of a DeviceAllocation, including its shape.
    explicit DeviceMemory(DeviceAllocation&& allocation);

    /// Returns the block's address; nullptr if the handle owns nothing.
    void* data() const noexcept { return allocation().data(); }
    /// Returns the requested bytes.
    std::size_t size() const noexcept { return allocation().size(); }
    /// Returns the device whose work the memory is for; cpu:0 if the handle owns nothing.
    Device device() const noexcept { return allocation().device(); }
    /// Returns which allocator provides the memory.
    MemoryKind kind() const noexcept { return allocation().kind(); }
    /// Returns the stream that the memory was allocated for, or the default stream (nullptr) after
    /// that stream has ended.
    StreamHandle stream() const noexcept { return allocation().stream(); }
    /// Returns whether the handle owns a block.
    explicit operator bool() const noexcept { return data() != nullptr; }
    /// Returns the address at which the host can access the memory; nullptr if it cannot. The
    /// caller must wait for the streams that use the memory.
    void* host_pointer() const noexcept { return allocation().host_pointer(); }
    /// Returns the number of handles to the memory, this one included; 0 if it owns nothing. Useful
    /// in tests only, because other threads may change it at any time.
    long use_count() const noexcept { return allocation_.use_count(); }

    /// Waits for the stream and the default stream, then copies the caller's bytes to the memory
    /// from `offset` on. The copy is done when the call returns. Throws std::out_of_range if the
    /// range does not lie in the memory.
    void set(std::size_t offset, std::span<const std::byte> bytes);
    /// Waits for the stream and the default stream, then copies the memory from `offset` on to the
    /// caller's bytes. The copy is done when the call returns. Throws std::out_of_range if the
    /// range does not lie in the memory.
    void get(std::size_t offset, std::span<std::byte> bytes) const;
    /// Submits a fill to the stream that sets each byte, and does not wait. Pinned and host memory
    /// are filled by a host function, which a captured stream rejects.
    void fill(std::uint8_t byte);
    /// Copies all of `other`, memory of any device and kind. Throws std::invalid_argument unless it
    /// has the same size.
    ///
    /// On one device, and between peers, the copy is submitted to the stream without a wait; work
    /// submitted to the stream of `other` from now on runs after it. Only a copy from
    /// MemoryKind::host to a device waits for the stream of `other`. Between other devices the copy
    /// passes through pinned memory in pieces and is done when the call returns.
    void copy_from(const DeviceMemory& other);
    /// Records that work submitted to another stream of the device, so far or until the block is
    /// freed, uses the memory too.
    void record_use(StreamHandle stream);

    /// Sets how this handle and its later copies view the memory as a tensor; other handles keep
    /// their shape. Throws std::invalid_argument for a shape that is invalid or needs more than the
    /// memory has.
    void set_shape(MemoryShape shape);
    /// Returns the shape of this handle; initially none.
    const MemoryShape& shape() const noexcept;

    /// Returns the allocation that all handles share.
    const DeviceAllocation& allocation() const noexcept;
    /// Gives up the memory, which is freed if this was its last handle.
    void reset() noexcept { *this = DeviceMemory(); }

private:
    DeviceAllocation& own() noexcept;

    std::shared_ptr<DeviceAllocation> allocation_;
    std::shared_ptr<const MemoryShape> shape_;
};

}  // namespace tensorpool
