#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "planned/learned_plan.hpp"

namespace tensorpool::planned {

/// A plan in a file. Integers are little-endian, whatever the machine:
///
///     8 bytes  "tp-plan\n"
///     u32      version: 1
///     u32      bytes of a request's record: 32
///     u64      requests
///     u64      bytes that the plan needs
///     u64      most bytes alive at once
///     u64      most bytes of the pool's blocks at once
///     u64      checksum of the sequence: of each request its bytes and its alignment
///     for each request, in their order:
///         u64  bytes, whole granules of 64
///         u64  offset; 2^64 - 1: left to the pool
///         u64  bytes of the pool's block that once served it
///         u32  how many requests had been made when it was freed; 2^32 - 1: left to the pool
///         u32  alignment
///     u64      checksum of all bytes before it (CRC-64/XZ)
///
inline constexpr std::string_view plan_file_magic = "tp-plan\n";
inline constexpr std::uint32_t plan_file_version = 1;
inline constexpr std::uint32_t plan_file_record_bytes = 32;

/// Throws std::runtime_error where the stream takes no more.
void write_plan(std::ostream& out, const LearnedPlan& plan);

/// Trusts nothing: every figure is checked before it is used, and that no two buffers overlap.
/// Throws std::runtime_error that names the file, the field, what was found and what was expected.
LearnedPlan read_plan(std::istream& in, const std::string& name);

}  // namespace tensorpool::planned
