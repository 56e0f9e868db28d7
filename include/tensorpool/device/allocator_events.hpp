#pragma once

/// @file
/// The events that a caching allocator reports to registered callbacks.

#include <tensorpool/device/backend.hpp>

namespace tensorpool {

/// An event of a caching allocator.
struct AllocatorEvent {
    /// What happened.
    enum class Kind : std::uint8_t {
        /// A block was allocated from new memory of the device.
        allocated,
        /// A block was allocated from free memory of the allocator.
        recycled,
        /// A block was freed.
        freed,
        /// Memory was given back to the device; `address` is where it was.
        released,
        /// A request is about to fail: the callback may free memory now. Reported once for a
        /// request.
        allocation_failed,
    };
    /// What happened.
    Kind kind = Kind::allocated;
    /// The allocator's device.
    Device device = {};
    /// The address; nullptr for `allocation_failed`.
    void* address = nullptr;
    /// The size of the block, including rounding; for `allocation_failed`, the requested size.
    std::size_t bytes = 0;
    /// The stream of the block or of the request.
    StreamHandle stream = nullptr;
};

/// A function that an allocator calls for each event. It runs on the thread whose call caused the
/// event, while no lock of the allocator is held, so it may allocate and free there. It must not
/// throw.
using AllocatorCallback = std::function<void(const AllocatorEvent&)>;

}  // namespace tensorpool
