#pragma once

/// @file
/// Hazards: errors that a simulated device found in the order in which a program uses memory.

#include <cstddef>
#include <cstdint>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The kinds of hazards.
enum class HazardKind : std::uint8_t {
    /// Memory got a new owner, whose work may run before the previous owner's.
    reuse_before_last_use,
    /// Access to a freed block or allocation.
    access_after_free,
    /// A read of memory that was not written since its allocation.
    read_of_uninitialised,
    /// A block was freed while another stream used it, without a `record_use`.
    missing_record_use,
    /// The host accesses memory that work under way reads or writes.
    host_access_too_early,
    /// A call that is not allowed while a stream is captured.
    illegal_in_capture,
    /// Access to addresses without an allocation.
    out_of_allocation,
    /// Memory was given back to the device while work under way uses it.
    free_in_use,
    /// A block or an allocation was freed twice, or an address that never was one.
    double_free,
    /// Two streams access a block, one of them writes, and nothing orders them.
    unordered_access,
    /// An allocator returned memory that is in use.
    overlapping_blocks,
    /// The host accesses memory that only the device can access.
    host_access_to_private,
};
/// Returns the kind as text, such as "access after free"; "?" for an unknown value.
TENSORPOOL_API const char* to_string(HazardKind kind) noexcept;

/// One operation of a program.
struct HazardOperation {
    /// The kernel's label, or the name of the called function.
    std::string label;
    /// Where it ran, such as "stream 2 of simulated:0" or "host".
    std::string stream;
    /// The number of the operation, counted over the program; 0 if there is no such operation.
    std::uint64_t number = 0;
};

/// An error in the order in which a program uses memory.
struct Hazard {
    /// The kind of hazard.
    HazardKind kind = HazardKind::access_after_free;
    /// The later operation, at which the hazard was found.
    HazardOperation operation;
    /// The earlier operation.
    HazardOperation other;
    /// The first address that both operations touch.
    const void* address = nullptr;
    /// The number of bytes that both operations touch.
    std::size_t bytes = 0;
};
/// Returns one line that names both operations.
TENSORPOOL_API std::string to_string(const Hazard& hazard);

}  // namespace tensorpool
