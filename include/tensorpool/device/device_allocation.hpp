#pragma once

/// @file
/// Memory of a device that gives itself back.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device/memory_shape.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

namespace device {
class RuntimeCore;
}
class Runtime;

/// Which of a runtime's allocators memory is from.
enum class MemoryKind : std::uint8_t {
    device,  ///< the device's own; the CPU's is host memory
    pinned,  ///< host memory that stays where it is, for copies to and from the device. Handles to
             ///< it keep it until its stream has passed, be that the default one
    host,    ///< ordinary host memory, kept until the device's streams are done with it
};
/// "device", "pinned", "host"; "?" for none of them.
TENSORPOOL_API const char* to_string(MemoryKind kind) noexcept;

/// Owns one block of a runtime's allocator. Move-only; one thread at a time, any thread may be the
/// last. Whatever the current device is, it goes back to where it came from. May outlive its
/// runtime.
///
/// What it does to its memory is work of the stream that it was made for, in that stream's order.
/// All of these throw DeviceError where the device fails.
class TENSORPOOL_API DeviceAllocation {
public:
    /// Owns nothing.
    DeviceAllocation() noexcept;
    /// `bytes` of the current device. Throws as DeviceAllocator::allocate does.
    explicit DeviceAllocation(std::size_t bytes, StreamHandle stream = nullptr);
    /// For work on a stream of this runtime's device.
    DeviceAllocation(Runtime& runtime, std::size_t bytes, StreamHandle stream = nullptr,
                     MemoryKind kind = MemoryKind::device);
    ~DeviceAllocation();
    DeviceAllocation(DeviceAllocation&& other) noexcept;
    DeviceAllocation& operator=(DeviceAllocation&& other) noexcept;
    DeviceAllocation(const DeviceAllocation&) = delete;
    DeviceAllocation& operator=(const DeviceAllocation&) = delete;

    /// nullptr for 0 bytes.
    void* data() const noexcept { return data_; }
    /// What was asked for.
    std::size_t size() const noexcept { return bytes_; }
    /// Whose work it is for; cpu:0 of one that owns nothing.
    Device device() const noexcept;
    MemoryKind kind() const noexcept { return kind_; }
    /// Its own, or the default one (nullptr) when that has ended.
    StreamHandle stream() const noexcept;
    explicit operator bool() const noexcept { return data_ != nullptr; }

    /// Where the host finds it: of the CPU, of pinned and host memory, of a device with unified
    /// memory or with shared or managed storage; nullptr otherwise. Who uses it waits for the
    /// streams that do.
    void* host_pointer() const noexcept;

    /// Waits for the stream, then copies the caller's bytes to the memory from `offset` on. Done
    /// when it returns. Throws std::out_of_range for what does not lie in the memory.
    void set(std::size_t offset, std::span<const std::byte> bytes);
    /// The other way.
    void get(std::size_t offset, std::span<std::byte> bytes) const;
    /// Sets each byte, in the stream's order. Does not wait. Pinned and host memory are filled by a
    /// function of the host, which no captured stream takes.
    void fill(std::uint8_t byte);
    /// Copies all of `other`, of any device and kind. Throws std::invalid_argument unless it is of
    /// the same size. On one device, and between peers, it is given to the stream and does not
    /// wait; work given to the stream of `other` from now on runs after it. Otherwise it goes
    /// through pinned memory in pieces, and is done when it returns.
    void copy_from(const DeviceAllocation& other);
    /// Work given to another stream of its device so far, or until it is freed, uses it too.
    void record_use(StreamHandle stream);

    /// How the caller sees it. Throws std::invalid_argument for a shape that makes no sense or
    /// takes more than the memory has.
    void set_shape(MemoryShape shape);
    /// What `set_shape` was given; at first none.
    const MemoryShape& shape() const noexcept { return shape_; }

    /// Gives it back now.
    void reset() noexcept;
    void swap(DeviceAllocation& other) noexcept;

private:
    friend class device::RuntimeCore;

    StreamHandle stream_for_work() const;

    std::shared_ptr<device::RuntimeCore> core_;
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    StreamHandle stream_ = nullptr;
    MemoryKind kind_ = MemoryKind::device;
    MemoryShape shape_;
};

}  // namespace tensorpool
