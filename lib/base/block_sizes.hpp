#pragma once

#include <array>
#include <cstdint>

#include <tensorpool/detail/buckets.hpp>

namespace tensorpool::base {

/// Block sizes form four series of eleven sizes each. Series 0 contains the powers of two of the
/// buckets and serves all callers. The other series are finer and used only for `malloc`, whose
/// callers need blocks aligned to 16 bytes only. They contain 5/4, 6/4 and 7/4 of the powers of two
/// (80, 96 and 112 B, doubled nine times). Their last sizes are 16, 32 and 48 B.
inline constexpr unsigned series_count = 4;
/// The alignment of blocks of the finer series, in bytes.
inline constexpr std::size_t finer_alignment = 16;

/// Identifies one block size: its series, and its index within the series.
struct BlockSize {
    std::uint8_t series = 0;
    std::uint8_t bucket = 0;
};

constexpr std::size_t block_bytes(unsigned series, unsigned bucket) noexcept {
    if (series == 0) return detail::bucket_bytes(bucket);
    if (bucket == detail::bucket_count - 1) return finer_alignment * series;
    return (detail::smallest_block_bytes + finer_alignment * series) << bucket;
}

/// Returns the bucket of series 0 that serves the same requests when the finer series are not used.
/// Statistics count the size under this bucket.
constexpr unsigned row_of(unsigned series, unsigned bucket) noexcept {
    if (series == 0) return bucket;
    return bucket == detail::bucket_count - 1 ? 0 : bucket + 1;
}

/// Returns the smallest block size that holds `bytes`, which is 1 to 64 KiB. Computed without a
/// table: there are four steps between one power of two and the next.
constexpr BlockSize compute_finest_size(std::size_t bytes) noexcept {
    const auto size = [](std::size_t quarters, std::size_t bucket, std::size_t bucket_of_next) {
        return BlockSize{
            static_cast<std::uint8_t>(quarters % series_count),
            static_cast<std::uint8_t>(quarters == series_count ? bucket_of_next : bucket)};
    };
    if (bytes <= detail::smallest_block_bytes) {
        return size((bytes + finer_alignment - 1) / finer_alignment, detail::bucket_count - 1, 0);
    }
    const unsigned below = detail::bucket_of(bytes) - 1;
    return size(((bytes - 1) >> (below + 4)) - (series_count - 1), below, below + 1);
}

inline constexpr std::size_t max_bytes_in_table = 1024;
inline constexpr auto table_of_finest_sizes = [] {
    std::array<BlockSize, max_bytes_in_table / finer_alignment + 1> table;
    for (std::size_t i = 1; i < table.size(); ++i) {
        table[i] = compute_finest_size(i * finer_alignment);
    }
    return table;
}();

/// Returns the smallest block size that holds `bytes`, which is 1 to 64 KiB.
constexpr BlockSize finest_size(std::size_t bytes) noexcept {
    if (bytes > max_bytes_in_table) return compute_finest_size(bytes);
    return table_of_finest_sizes[(bytes + finer_alignment - 1) / finer_alignment];
}

namespace laws {
consteval bool every_size_serves_its_own_range() {
    std::size_t below = 0;
    while (below != detail::largest_block_bytes) {
        const BlockSize size = finest_size(below + 1);
        const std::size_t bytes = block_bytes(size.series, size.bucket);
        const BlockSize same = finest_size(bytes);
        if (bytes <= below || bytes % finer_alignment != 0) return false;
        if (same.series != size.series || same.bucket != size.bucket) return false;
        if (row_of(size.series, size.bucket) != detail::bucket_of(bytes)) return false;
        below = bytes;
    }
    return true;
}
static_assert(every_size_serves_its_own_range());
}  // namespace laws

}  // namespace tensorpool::base
