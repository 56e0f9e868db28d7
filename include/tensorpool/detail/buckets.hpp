#pragma once

/// @file
/// The block sizes of the buckets: the powers of two from 64 B to 64 KiB. Layer `base`.

#include <bit>
#include <cstddef>

namespace tensorpool::detail {
inline namespace abi_2 {

/// The number of buckets.
inline constexpr unsigned bucket_count = 11;
/// The block size of the first bucket.
inline constexpr std::size_t smallest_block_bytes = 64;
/// The block size of the last bucket.
inline constexpr std::size_t largest_block_bytes = std::size_t{64} << 10;

/// Returns the bytes of a block of this bucket.
constexpr std::size_t bucket_bytes(unsigned bucket) noexcept {
    return smallest_block_bytes << bucket;
}

/// Returns the bucket that serves `bytes` bytes. Returns `bucket_count` or more if none does: for
/// 0, which wraps around, and for more than the largest block.
constexpr unsigned bucket_of(std::size_t bytes) noexcept {
    return static_cast<unsigned>(std::bit_width((bytes - 1) | (smallest_block_bytes - 1))) - 6U;
}

namespace laws {
consteval bool every_bucket_serves_its_own_range() {
    for (unsigned bucket = 0; bucket < bucket_count; ++bucket) {
        const std::size_t bytes = bucket_bytes(bucket);
        const std::size_t below = bucket == 0 ? 0 : bucket_bytes(bucket - 1);
        if (!std::has_single_bit(bytes)) return false;
        if (bucket_of(bytes) != bucket || bucket_of(below + 1) != bucket) return false;
    }
    return true;
}
static_assert(every_bucket_serves_its_own_range());
static_assert(bucket_bytes(bucket_count - 1) == largest_block_bytes);
static_assert(bucket_of(0) >= bucket_count);
static_assert(bucket_of(largest_block_bytes + 1) >= bucket_count);
static_assert(bucket_of(~std::size_t{0}) >= bucket_count);
}  // namespace laws

}  // namespace abi_2
}  // namespace tensorpool::detail
