#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/alignment.hpp"

/// The sizes of blocks and slabs, in bytes.
namespace tensorpool::device {

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;

/// Granularity of small blocks, which begin and end at multiples of it within their slab.
inline constexpr std::size_t small_grain = 512;
/// The largest small block.
inline constexpr std::size_t small_limit = mib;
/// Larger sizes are rounded up to a 64th of the power of two below them, so by less than a 64th.
inline constexpr unsigned large_steps = 64;
inline constexpr std::size_t large_grain = small_limit / large_steps;

/// Sizes of slabs that are not expandable.
inline constexpr std::size_t small_slab_bytes = 2 * mib;
inline constexpr std::size_t large_slab_bytes = 32 * mib;
/// Sizes of slabs for requests from `xlarge_request_bytes` up to half of the slab, on devices of at
/// least `large_device_bytes`: without and with unified memory. Source: PyTorch's Metal allocator
/// (MPSAllocator.h).
inline constexpr std::size_t xlarge_slab_bytes = 128 * mib;
inline constexpr std::size_t xlarge_unified_slab_bytes = 1024 * mib;
inline constexpr std::size_t xlarge_request_bytes = 10 * mib;
/// Slab sizes are multiples of this. Expandable slabs grow by this, or by the device's granularity
/// if that is larger.
inline constexpr std::size_t slab_step = 2 * mib;
/// Expandable slabs of large blocks grow by this on devices of at least `large_device_bytes`: ten
/// pieces of 2 MiB take ten times as long as one of 20 MiB. Source: PyTorch's pull request 96995. A
/// power of two, as all granularities are.
inline constexpr std::size_t large_granule_bytes = 32 * mib;
inline constexpr std::size_t large_device_bytes = 4096 * mib;

/// The limit of a request. Sums of two such sizes do not overflow.
inline constexpr std::size_t max_bytes = std::size_t{1} << 62;

/// The set that a free block belongs to. Each block of `shareable` is a slab that other processes
/// may have opened, so none is handed out twice.
enum class Pool : std::uint8_t { small, large, oversize, shareable };
inline constexpr std::size_t pool_count = 4;

/// Returns the size of the block for a request; 0 for 0. REQUIRES: `bytes` is at most `max_bytes`.
constexpr std::size_t round_bytes(std::size_t bytes) noexcept {
    const std::size_t grain =
        bytes <= small_limit ? small_grain : std::bit_floor(bytes) / large_steps;
    return base::align_up(bytes, grain);
}

static_assert(round_bytes(0) == 0 && round_bytes(1) == 512 && round_bytes(512) == 512);
static_assert(round_bytes(small_limit) == small_limit);
static_assert(round_bytes(small_limit + 1) == small_limit + large_grain);
static_assert(round_bytes(128 * mib + 1) == 130 * mib && round_bytes(100 * mib) == 100 * mib);

}  // namespace tensorpool::device
