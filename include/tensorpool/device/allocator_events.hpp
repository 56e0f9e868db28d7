#pragma once

/// @file
/// What a caching allocator tells callbacks that were registered with it.

#include <cstddef>
#include <cstdint>
#include <functional>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>

namespace tensorpool {

struct AllocatorEvent {
    enum class Kind : std::uint8_t {
        allocated,  ///< a block was handed out of memory that the device gave for it
        recycled,   ///< a block was handed out of memory that was free already
        freed,      ///< a block came back
        released,   ///< memory goes back to the device; `address` is where it was
        /// A request is about to fail: whoever can free something may do so now. Once a request.
        allocation_failed,
    };
    Kind kind = Kind::allocated;
    Device device = {};
    void* address = nullptr;  ///< nullptr of `allocation_failed`
    std::size_t bytes = 0;    ///< of the block, rounding included; asked, of `allocation_failed`
    StreamHandle stream = nullptr;
};

/// Called on the thread whose call caused it, while no lock of the allocator is held: it may
/// allocate and free there. Must not throw.
using AllocatorCallback = std::function<void(const AllocatorEvent&)>;

}  // namespace tensorpool
