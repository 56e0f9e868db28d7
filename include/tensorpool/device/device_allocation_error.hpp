#pragma once

/// @file
/// The exception for requests of device memory that cannot be met.

#include <new>

#include <tensorpool/device/backend.hpp>

namespace tensorpool {

/// The circumstances of a failed request. All sizes are bytes. Strings are cut to the space that
/// they have.
struct DeviceAllocationFailure {
    /// The cause of the failure.
    enum class Cause : std::uint8_t {
        /// The request exceeds the limit for one block.
        request,
        /// The request exceeds the allocator's hard limit.
        limit,
        /// The allocator's budget, or one above it, refused.
        budget,
        /// Enough memory is free, but not in one piece.
        fragmentation,
        /// Callers hold too much memory.
        own_use,
        /// Freed memory is held back until streams have passed.
        held_back,
        /// Other processes hold the missing memory.
        other_processes,
        /// A stream is captured, and during a capture the device allocates no memory, or no memory
        /// is given back for it.
        capture,
        /// The allocator sleeps.
        asleep,
        /// The device failed otherwise; see `status`.
        device,
    };
    /// The largest number of streams in `holders`.
    static constexpr std::size_t max_streams = 4;

    /// The cause of the failure.
    Cause cause = Cause::own_use;
    /// The device's result.
    DeviceStatus status = DeviceStatus::out_of_memory;
    /// The device.
    Device device = {};
    /// The name of the allocator, zero-terminated.
    char allocator[48] = {};
    /// The requested size.
    std::size_t asked = 0;
    /// The bytes of blocks in use.
    std::size_t in_use = 0;
    /// The bytes of all slabs.
    std::size_t capacity = 0;
    /// The free bytes in slabs.
    std::size_t free = 0;
    /// The number of free runs in slabs.
    std::size_t free_blocks = 0;
    /// The bytes of the longest free run.
    std::size_t largest_free = 0;
    /// The bytes that were freed and are held back until streams have passed.
    std::size_t held_back = 0;
    /// The bytes in slabs of graphs.
    std::size_t captured = 0;
    /// The hard limit; 0 means no limit.
    std::size_t limit = 0;
    /// The free bytes of the device.
    std::size_t device_free = 0;
    /// The device's memory.
    std::size_t device_total = 0;
    /// The bytes of the device's memory that are neither free nor held by the allocator.
    std::size_t other_processes = 0;
    /// The additional free bytes, in one piece, with which the request would have succeeded.
    std::size_t missing = 0;
    /// A stream that holds back freed blocks.
    struct Holder {
        /// The stream.
        StreamHandle stream = nullptr;
        /// The bytes that it holds back.
        std::size_t bytes = 0;
    };
    /// The time that the request waited for copies that held freed blocks back, in nanoseconds; 0:
    /// it did not wait.
    std::uint64_t waited_ns = 0;
    /// The streams that hold back freed blocks, those with most bytes first.
    Holder holders[max_streams] = {};
    /// The number of streams in `holders`.
    std::size_t holder_count = 0;
    /// The names of the callbacks that were registered, with commas between them, zero-terminated.
    char callbacks[96] = {};
    /// For `budget`: what holders gave and the state of each budget from the allocator's up, in
    /// lines that each begin with a newline, zero-terminated.
    char budgets[512] = {};
};

/// Returns the name of the cause, such as "limit" or "fragmentation".
TENSORPOOL_API const char* to_string(DeviceAllocationFailure::Cause cause) noexcept;

/// A request for device memory or pinned memory that could not be met.
///
/// All blocks in use stay valid. The text is stored in the object, so making one allocates no
/// memory.
class TENSORPOOL_API DeviceAllocationError : public std::bad_alloc {
public:
    /// Makes the error from the circumstances of the failure.
    explicit DeviceAllocationError(const DeviceAllocationFailure& failure) noexcept;
    ~DeviceAllocationError() override;

    /// Returns the text, several lines: the sizes requested, in use and free, the streams that hold
    /// memory back, the cause, and the remedy.
    const char* what() const noexcept override { return text_; }
    /// Returns the circumstances of the failure.
    const DeviceAllocationFailure& failure() const noexcept { return failure_; }
    /// Returns the requested size, in bytes.
    std::size_t asked() const noexcept { return failure_.asked; }

private:
    DeviceAllocationFailure failure_;
    char text_[1536];
};

}  // namespace tensorpool
