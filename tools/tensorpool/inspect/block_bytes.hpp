#pragma once

/// @file
/// What a request takes of a pool, where the trace does not tell.

#include <cstdint>

namespace tensorpool::command::inspect {

/// Bytes of the block that a pool hands out for `bytes` at an alignment of 2 to the power of
/// `alignment_log2`: of a bucket up to 64 KiB, above of whole pages, as lib/README.md tells.
std::uint64_t pool_block_bytes(std::uint64_t bytes, unsigned alignment_log2) noexcept;

}  // namespace tensorpool::command::inspect
