#pragma once

#include "device/runtime/runtime_core.hpp"

namespace tensorpool::device {

/// One end of a copy.
struct CopyEnd {
    RuntimeCore& core;
    void* memory;
    MemoryKind kind;
    StreamHandle stream;

    bool on_host() const noexcept { return core.is_host_memory(kind); }
    CopyEnd at(std::size_t offset) const noexcept {
        return {core, static_cast<std::byte*>(memory) + offset, kind, stream};
    }
};

/// Copies `bytes` in the order of both streams, as DeviceAllocation::copy_from documents. Throws
/// DeviceError.
void copy_between(const CopyEnd& to, const CopyEnd& from, std::size_t bytes);
/// Sets each byte to `byte`, in the order of the stream. Throws DeviceError.
void fill(const CopyEnd& end, std::uint8_t byte, std::size_t bytes);

/// Throws std::invalid_argument if `bytes` bytes of memory are too few for a tensor of this shape,
/// or if the shape is invalid. An empty shape is always accepted.
void check_shape(const MemoryShape& shape, std::size_t bytes);

}  // namespace tensorpool::device
