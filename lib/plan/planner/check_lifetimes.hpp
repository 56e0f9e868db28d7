#pragma once

#include <cstddef>
#include <span>

#include <tensorpool/memory_plan.hpp>

namespace tensorpool::planner {

/// The maximum number of buffers in a plan. Buffers are numbered in 32 bits, and so are their
/// beginnings and ends together.
inline constexpr std::size_t max_buffers = (std::size_t{1} << 31) - 1;
/// The maximum sum, in bytes, of all sizes and of the worst padding of each buffer (its alignment
/// less 1).
inline constexpr std::uint64_t max_bytes = std::uint64_t{1} << 63;

/// Throws std::invalid_argument if `buffers` exceeds `max_buffers`.
void check_count(std::size_t buffers);

/// Throws std::invalid_argument if the lifetimes cannot be planned. The message names the first
/// buffer whose interval is empty or reversed, whose alignment is not a power of two, or whose
/// bytes make the sum exceed `max_bytes`.
void check_lifetimes(std::span<const TensorLifetime> lifetimes);

}  // namespace tensorpool::planner
