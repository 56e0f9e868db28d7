#pragma once

/// @file
/// What a simulated device found wrong with the order in which a program uses memory.

#include <cstddef>
#include <cstdint>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

enum class HazardKind : std::uint8_t {
    reuse_before_last_use,   ///< memory got a new owner, whose work may run before the old one's
    access_after_free,       ///< of a block or of an allocation
    read_of_uninitialised,   ///< of memory that nothing was written to since it was allocated
    missing_record_use,      ///< freed while another stream uses it, of which nobody was told
    host_access_too_early,   ///< the host touches what work under way reads or writes
    illegal_in_capture,      ///< a call that may not be made while a stream is captured
    out_of_allocation,       ///< access to addresses where nothing is allocated
    free_in_use,             ///< memory given back to the device while work under way uses it
    double_free,             ///< of a block or of an allocation, or of what never was one
    unordered_access,        ///< two streams access a block, one writes, and nothing orders them
    overlapping_blocks,      ///< an allocator handed out memory that is in use
    host_access_to_private,  ///< the host cannot reach it
};
/// "access after free" and so on; "?" for none.
TENSORPOOL_API const char* to_string(HazardKind kind) noexcept;

/// One thing that a program did.
struct HazardOperation {
    std::string label;         ///< a kernel's own, or the function called
    std::string stream;        ///< such as "stream 2 of simulated:0", or "host"
    std::uint64_t number = 0;  ///< counts what a program did; 0: there is no such operation
};

struct Hazard {
    HazardKind kind = HazardKind::access_after_free;
    HazardOperation operation;  ///< the later one, at which it was found
    HazardOperation other;      ///< the earlier one
    const void* address = nullptr;
    std::size_t bytes = 0;  ///< from there on that both touch
};
/// One line that names both operations.
TENSORPOOL_API std::string to_string(const Hazard& hazard);

}  // namespace tensorpool
