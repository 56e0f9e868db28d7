#pragma once

/// @file
/// Memory of a device that several share.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// A handle to a block that goes back when its last handle does, on whichever thread that is. Each
/// handle is one thread's at a time, as a shared pointer; what they do to the memory is work of its
/// stream, in the order in which they do it. All as for DeviceAllocation.
class TENSORPOOL_API DeviceMemory {
public:
    /// Owns nothing: a size of 0, and nothing to be done with it.
    DeviceMemory() noexcept = default;
    explicit DeviceMemory(std::size_t bytes, StreamHandle stream = nullptr);
    DeviceMemory(Runtime& runtime, std::size_t bytes, StreamHandle stream = nullptr,
                 MemoryKind kind = MemoryKind::device);
    /// Takes over, shape included.
    explicit DeviceMemory(DeviceAllocation&& allocation);

    void* data() const noexcept { return allocation().data(); }
    std::size_t size() const noexcept { return allocation().size(); }
    Device device() const noexcept { return allocation().device(); }
    MemoryKind kind() const noexcept { return allocation().kind(); }
    StreamHandle stream() const noexcept { return allocation().stream(); }
    explicit operator bool() const noexcept { return data() != nullptr; }
    void* host_pointer() const noexcept { return allocation().host_pointer(); }
    /// Handles to the same memory, this one included; 0 where it owns nothing. Of use for tests:
    /// another thread may change it meanwhile.
    long use_count() const noexcept { return allocation_.use_count(); }

    void set(std::size_t offset, std::span<const std::byte> bytes);
    void get(std::size_t offset, std::span<std::byte> bytes) const;
    void fill(std::uint8_t byte);
    void copy_from(const DeviceMemory& other);
    void record_use(StreamHandle stream);

    /// Of this handle and its later copies; others to the same memory keep theirs. Throws as
    /// DeviceAllocation::set_shape.
    void set_shape(MemoryShape shape);
    const MemoryShape& shape() const noexcept;

    /// The one behind all handles.
    const DeviceAllocation& allocation() const noexcept;
    /// Lets go of the memory.
    void reset() noexcept { *this = DeviceMemory(); }

private:
    DeviceAllocation& own() noexcept;

    std::shared_ptr<DeviceAllocation> allocation_;
    std::shared_ptr<const MemoryShape> shape_;
};

}  // namespace tensorpool
