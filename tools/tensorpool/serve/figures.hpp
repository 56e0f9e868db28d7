#pragma once

/// @file
/// What is kept of a pool's past: at most 16 figures of 4 bytes a sample, the time among them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <tensorpool/process_snapshot.hpp>

namespace tensorpool::command::serve {

enum class Figure : std::uint8_t {
    in_use,  ///< bytes, and so are the next six
    magazine,
    depot,
    span,
    extent,
    capacity,
    limit,
    from_magazines,  ///< allocations a second, and so are the next four
    from_depots,
    from_spans,
    from_extents,
    from_system,
    allocated,  ///< bytes a second: what `rounding` is a part of
    rounding,   ///< part of the allocated bytes that nobody asked for
    hit_ratio,  ///< of the allocations
};
inline constexpr std::size_t figure_count = 15;

/// As the page knows it.
const char* name_of(Figure figure) noexcept;

/// NaN where a figure is not known.
using Figures = std::array<float, figure_count>;

inline float& at(Figures& figures, Figure figure) {
    return figures[static_cast<std::size_t>(figure)];
}

/// `rates` is null for the first snapshot that has the pool.
Figures figures_of(const PoolStatistics& pool, const PoolRates* rates) noexcept;

}  // namespace tensorpool::command::serve
