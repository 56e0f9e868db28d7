#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <tensorpool/detail/allocated_by.hpp>

namespace tensorpool::pages {

/// How a block of a hardened pool was allocated, beside its size. A free that states something else
/// is a misuse. A default-constructed one has the default alignment of a pool's blocks.
class BlockOrigin {
public:
    static constexpr std::size_t default_alignment = 64;

    constexpr BlockOrigin() noexcept = default;
    /// REQUIRES: `alignment` is a power of two. Those up to the default one are not distinguished.
    explicit constexpr BlockOrigin(std::size_t alignment,
                                   detail::AllocatedBy by = detail::AllocatedBy::pool) noexcept
        : packed_(static_cast<std::uint8_t>(
              std::countr_zero(std::max(alignment, default_alignment) / default_alignment) |
              static_cast<int>(by) << by_shift)) {}

    constexpr std::size_t alignment() const noexcept {
        return default_alignment << (packed_ & ((1 << by_shift) - 1));
    }
    constexpr detail::AllocatedBy by() const noexcept {
        return static_cast<detail::AllocatedBy>(packed_ >> by_shift);
    }

private:
    static constexpr int by_shift = 6;

    std::uint8_t packed_ = 0;  // the doublings of the default alignment; above them, `by`
};
static_assert(sizeof(BlockOrigin) == 1);

}  // namespace tensorpool::pages
