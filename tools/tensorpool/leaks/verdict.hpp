#pragma once

/// @file
/// Judges from samples whether the memory of a call stack grows from iteration to iteration.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tensorpool::command::leaks {

enum class Verdict : std::uint8_t {
    leak,        ///< grows in proportion to the iterations, up to the end of the window
    too_little,  ///< grows, but by too little or too irregularly to tell
    cache,       ///< grows, but less and less
    warm_up,     ///< grew at the beginning of the window only
    steady,      ///< does not grow
};
/// Returns "leak", "too little to tell", "cache that fills", "warm-up" or "steady".
std::string_view to_string(Verdict verdict) noexcept;

/// What one call stack held at the ends of the iterations. All values are estimates from samples.
struct History {
    std::vector<double> live;       ///< bytes in use
    std::vector<double> allocated;  ///< bytes of all allocations so far
    /// The variance of an estimate of n bytes that were allocated between the first and the last
    /// profile is n times this; see `noise_mean_of`.
    double noise_mean = 0;
};

/// Returns the ratio of the variance of an estimate to the estimate, in bytes, for allocations of
/// so many bytes and blocks by so many samples.
///
/// A sampled block counts as 1 / p blocks, so it adds w = n / p bytes with the variance
/// w * w * (1 - p), which is w * (1 - p) per byte. This is the sampling mean for small blocks, and
/// almost 0 for blocks that are much larger than it, because all of them are sampled.
double noise_mean_of(double allocated_bytes, double allocated_blocks, double samples) noexcept;

struct Judgement {
    Verdict verdict = Verdict::steady;
    double growth = 0;       ///< bytes, from the first profile to the last
    double uncertainty = 0;  ///< the standard deviation of `growth` that sampling causes
    /// The profile from which on the growth survived to the end, and that from which on half of it
    /// did. Indices of `History::live`.
    std::size_t oldest = 0;
    std::size_t median = 0;
};

/// Judges a site. `interval` is the mean distance between samples in bytes.
Judgement judge(const History& history, double interval);

}  // namespace tensorpool::command::leaks
