#pragma once

/// @file
/// Look-ups in the page map for the interposer. They take no lock, and any thread may call them.

#include <cstddef>

#include <tensorpool/export.hpp>

namespace tensorpool::detail {
inline namespace abi_2 {

/// Returns whether `p` lies in the page map, whose parts that can only be read were never written.
TENSORPOOL_API bool lies_in_page_map(const void* p) noexcept;

/// Returns the bytes that the block in use at `p` takes, of any pool, with those that protect it;
/// 0 if `p` belongs to no pool.
TENSORPOOL_API std::size_t bytes_of_block(const void* p) noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
