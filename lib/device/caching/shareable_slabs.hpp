#pragma once

#include <cstddef>

#include "device/caching/allocator_state.hpp"

namespace tensorpool::device {

/// Growth by slabs that other processes can open. Each is one block with one granule, because a
/// descriptor opens all of a granule, and none is cut or handed out again.
class ShareableSlabs {
public:
    explicit ShareableSlabs(AllocatorState& state) noexcept : state_(state) {}

    Outcome grow(StreamCache& cache, const Request& request);

private:
    struct Memory;

    DeviceStatus obtain(Memory& memory) noexcept;
    Block* add_slab(StreamCache& cache, const Memory& memory);

    AllocatorState& state_;
};

}  // namespace tensorpool::device
