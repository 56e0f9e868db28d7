#pragma once

/// @file
/// The size of a pool's block for a request, for traces that do not contain it.

#include <cstdint>

namespace tensorpool::command::trace {

/// Returns the size of the block that a pool hands out for `bytes` bytes with an alignment of 2 to
/// the power of `alignment_log2`: that of a bucket up to 64 KiB, whole pages above.
std::uint64_t pool_block_bytes(std::uint64_t bytes, unsigned alignment_log2) noexcept;

}  // namespace tensorpool::command::trace
