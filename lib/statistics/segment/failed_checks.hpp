#pragma once

#include <string_view>

namespace tensorpool::statistics {

/// Kinds of checks, in the order of SegmentHeader::failed_checks.
enum class CheckKind : unsigned char {
    misuse,       ///< a pointer or a size that does not fit
    leak,         ///< blocks left when a pool with checks goes
    thread,       ///< another thread uses an arena of one
    scope_order,  ///< a scope ends before one that began inside it
};

/// A check fired: counts it and puts it on the timeline, with the name of the pool, arena or scope.
/// For most of them the program then ends. Any thread; takes no lock.
void count_failed_check(CheckKind kind, std::string_view name) noexcept;

}  // namespace tensorpool::statistics
