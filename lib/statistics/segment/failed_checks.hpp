#pragma once

#include <string_view>

namespace tensorpool::statistics {

/// Kinds of checks, in the order of SegmentHeader::failed_checks.
enum class CheckKind : unsigned char {
    misuse,       ///< an invalid pointer or size
    leak,         ///< blocks still in use when a pool with checks is destroyed
    thread,       ///< use of a single-thread arena by another thread
    scope_order,  ///< a scope that ends before one that began inside it
};

/// Counts a failed check and writes it to the timeline with the name of the pool, arena or scope.
/// After most checks the program then ends. May be called on any thread; takes no lock.
void count_failed_check(CheckKind kind, std::string_view name) noexcept;

}  // namespace tensorpool::statistics
