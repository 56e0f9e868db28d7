#pragma once

#include <cstddef>
#include <span>

#include <tensorpool/memory_plan.hpp>

namespace tensorpool::planner {

/// The most buffers that a plan takes: they are numbered in 32 bits, and so are their beginnings
/// and ends together.
inline constexpr std::size_t max_buffers = (std::size_t{1} << 31) - 1;
/// The most bytes of all buffers, each with what its alignment may cost (one less than it is).
inline constexpr std::uint64_t max_bytes = std::uint64_t{1} << 63;

/// Throws std::invalid_argument for more than `max_buffers`.
void check_count(std::size_t buffers);

/// Throws std::invalid_argument, naming the first buffer whose interval is empty or runs backwards,
/// whose alignment is no power of two, or with which all pass `max_bytes`.
void check_lifetimes(std::span<const TensorLifetime> lifetimes);

}  // namespace tensorpool::planner
