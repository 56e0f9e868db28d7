#include "formats/trace/block_bytes.hpp"

#include <algorithm>
#include <bit>

#include <tensorpool/detail/buckets.hpp>

namespace tensorpool::command::trace {
namespace {

// The page size of the pool, independent of the system's page size.
constexpr std::uint64_t page_bytes = 4096;
// Larger alignments are served by whole pages.
constexpr std::uint64_t max_bucket_alignment = 2048;
// Above the limit of any pool. Much larger sizes would overflow 64 bits when rounded up.
constexpr std::uint64_t beyond_all_pools = std::uint64_t{1} << 60;

// The alignment that malloc requests from a pool with finer sizes.
constexpr unsigned malloc_alignment_log2 = 4;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t step) noexcept {
    return (bytes + step - 1) & ~(step - 1);
}

// Finer sizes: steps of 16 B up to 64 B, then four sizes for each doubling.
std::uint64_t finest_bytes(std::uint64_t bytes) noexcept {
    return round_up(bytes, bytes <= 64 ? 16 : std::bit_floor(bytes - 1) / 4);
}

// Large blocks: eight sizes for each doubling up to 1 MiB, thirty-two above.
std::uint64_t round_pages(std::uint64_t pages) noexcept {
    if (pages <= 16) return pages;
    const auto digits = static_cast<unsigned>(std::bit_width(pages - 1)) - (pages <= 256 ? 4U : 6U);
    return round_up(pages, std::uint64_t{1} << digits);
}

}  // namespace

std::uint64_t pool_block_bytes(std::uint64_t bytes, unsigned alignment_log2) noexcept {
    if (bytes > beyond_all_pools || alignment_log2 > 60) return bytes;
    const std::uint64_t alignment = std::uint64_t{1} << alignment_log2;
    const std::uint64_t wanted =
        alignment > detail::smallest_block_bytes ? std::max(bytes, alignment) : bytes;
    const bool aligned_in_bucket =
        alignment <= detail::smallest_block_bytes || wanted <= max_bucket_alignment;
    const unsigned bucket = detail::bucket_of(wanted);
    if (alignment_log2 == malloc_alignment_log2 && bucket < detail::bucket_count)
        return finest_bytes(bytes);
    if (aligned_in_bucket && bucket < detail::bucket_count) return detail::bucket_bytes(bucket);
    return round_pages((bytes + page_bytes - 1) / page_bytes) * page_bytes;
}

}  // namespace tensorpool::command::trace
