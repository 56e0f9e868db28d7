#pragma once

#include <iosfwd>
#include <string_view>

#include "plan/learned_plan.hpp"

namespace tensorpool::planned {

/// The file format of a plan. Integers are little-endian on every machine:
///
///     8 bytes  "tp-plan\n"
///     u32      version: 1
///     u32      bytes of a request's record: 32
///     u64      number of requests
///     u64      bytes that the plan needs
///     u64      maximum bytes alive at once
///     u64      maximum bytes of the pool's blocks at once
///     u64      checksum of the sequence: of the bytes and the alignment of each request
///     for each request, in order:
///         u64  bytes, a multiple of 64
///         u64  offset; 2^64 - 1: left to the pool
///         u64  bytes of the pool's block that served it while learning
///         u32  number of requests made before it was freed; 2^32 - 1: left to the pool
///         u32  alignment
///     u64      checksum of all bytes before it (CRC-64/XZ)
inline constexpr std::string_view plan_file_magic = "tp-plan\n";
inline constexpr std::uint32_t plan_file_version = 1;
inline constexpr std::uint32_t plan_file_record_bytes = 32;

/// Writes a plan. Throws std::runtime_error if the stream cannot be written.
void write_plan(std::ostream& out, const LearnedPlan& plan);

/// Reads a plan from a stream. Checks every value before it is used, and that no two buffers
/// overlap. Throws std::runtime_error that names the file, the field, what was found and what was
/// expected. `name` is the file's name for messages.
LearnedPlan read_plan(std::istream& in, const std::string& name);

}  // namespace tensorpool::planned
