#pragma once

/// @file
/// A handle that owns memory of a device.

#include <memory>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/memory_shape.hpp>

namespace tensorpool {

namespace device {
class RuntimeCore;
}
class Runtime;

/// Which of a runtime's allocators provides the memory.
enum class MemoryKind : std::uint8_t {
    /// The device's own memory; for the CPU, host memory.
    device,
    /// Pinned host memory, for copies to and from the device. A freed block is reused only after
    /// the stream of its handle has passed, even if that is the default stream.
    pinned,
    /// Ordinary host memory. A freed block is reused only after the device's streams are done with
    /// it.
    host,
};
/// Returns "device", "pinned" or "host"; "?" for an unknown value.
TENSORPOOL_API const char* to_string(MemoryKind kind) noexcept;

/// Owns one block of a runtime's allocator and frees it when destroyed.
///
/// Move-only. One thread at a time may use it; any thread may destroy it. The block goes back to
/// the allocator that it came from, independently of the current device. The handle may outlive its
/// runtime.
///
/// Operations on the memory are work of the stream that it was allocated for, in that stream's
/// order. They throw DeviceError if the device fails.
class TENSORPOOL_API DeviceAllocation {
public:
    /// Makes a handle that owns nothing.
    DeviceAllocation() noexcept;
    /// Allocates `bytes` bytes of the current device for work on `stream`, by default the current
    /// stream; owns nothing for 0. Throws DeviceAllocationError if the memory is unavailable, and
    /// DeviceError if the device fails otherwise.
    explicit DeviceAllocation(std::size_t bytes, std::optional<StreamHandle> stream = {});
    /// Allocates `bytes` bytes of the runtime's device for work on `stream`, by default the current
    /// stream; owns nothing for 0. Throws DeviceAllocationError if the memory is unavailable, and
    /// DeviceError if the device fails otherwise.
    DeviceAllocation(Runtime& runtime, std::size_t bytes, std::optional<StreamHandle> stream = {},
                     MemoryKind kind = MemoryKind::device);
    /// Frees the block.
    ~DeviceAllocation();
    /// Takes the block of `other`, which then owns nothing.
    DeviceAllocation(DeviceAllocation&& other) noexcept;
    /// Frees the present block and takes the block of `other`, which then owns nothing.
    DeviceAllocation& operator=(DeviceAllocation&& other) noexcept;
    DeviceAllocation(const DeviceAllocation&) = delete;
    DeviceAllocation& operator=(const DeviceAllocation&) = delete;

    /// Returns the block's address; nullptr if the handle owns nothing.
    void* data() const noexcept { return data_; }
    /// Returns the requested bytes.
    std::size_t size() const noexcept { return bytes_; }
    /// Returns the device whose work the memory is for; cpu:0 if the handle owns nothing.
    Device device() const noexcept;
    /// Returns which allocator provides the memory.
    MemoryKind kind() const noexcept { return kind_; }
    /// Returns the stream that the memory was allocated for, or the default stream (nullptr) after
    /// that stream has ended.
    StreamHandle stream() const noexcept;
    /// Returns whether the handle owns a block.
    explicit operator bool() const noexcept { return data_ != nullptr; }

    /// Returns the address at which the host can access the memory: that of the CPU, pinned and
    /// host memory, and memory of a device with unified, shared or managed storage. Returns nullptr
    /// otherwise. The caller must wait for the streams that use the memory.
    void* host_pointer() const noexcept;

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
    void copy_from(const DeviceAllocation& other);
    /// Records that work submitted to another stream of the device, so far or until the block is
    /// freed, uses the memory too.
    void record_use(StreamHandle stream);

    /// Sets how the caller views the memory as a tensor. Throws std::invalid_argument for a shape
    /// that is invalid or needs more than the memory has.
    void set_shape(MemoryShape shape);
    /// Returns the shape that `set_shape` was given; initially none.
    const MemoryShape& shape() const noexcept { return shape_; }

    /// Frees the block now.
    void reset() noexcept;
    /// Exchanges the blocks of two handles.
    void swap(DeviceAllocation& other) noexcept;

private:
    friend class device::RuntimeCore;

    StreamHandle stream_for_work() const;

    std::shared_ptr<device::RuntimeCore> core_;
    StreamHandle stream_ = nullptr;
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    MemoryKind kind_ = MemoryKind::device;
    MemoryShape shape_;
};

}  // namespace tensorpool
