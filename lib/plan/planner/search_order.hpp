#pragma once

/// The order in which a search tries buffers that could lie at the same offset. No order is best
/// for all problems, so a search alternates between them. The first orders are those of MiniMalloc
/// (Moffitt, ASPLOS 2023). The others, and the noise, solve those of its public instances that the
/// first do not.

#include <array>
#include <random>

#include "plan/planner/problem.hpp"

namespace tensorpool::planner {

/// The name lists the sort keys, each descending:
///  - `crowd`: the maximum of unplaced bytes over the slices of the buffer;
///  - `time`: its lifetime by the caller's clock; `area`: the lifetime times its bytes;
///  - `slices` and `slice_area`: the same with the number of slices in place of the lifetime;
///  - `trouble`: how often the search failed in one of its slices; recent failures count more.
enum class SearchOrder : std::uint8_t {
    crowd_time_area,
    slice_area_crowd,
    crowd_slice_area,
    trouble_time_area,
    time_area_crowd,
    trouble_slices_area,
};
inline constexpr std::array all_search_orders{
    SearchOrder::crowd_time_area,  SearchOrder::slice_area_crowd,
    SearchOrder::crowd_slice_area, SearchOrder::trouble_time_area,
    SearchOrder::time_area_crowd,  SearchOrder::trouble_slices_area};

/// Counts how often a search failed in each slice. Older failures count less.
class SliceTrouble {
public:
    explicit SliceTrouble(std::size_t slices) : trouble_(slices, 0) {}
    void add(std::uint32_t slice) noexcept;
    /// Returns the maximum count over the slices in which the buffer is alive.
    double max(const Buffer& buffer) const noexcept;

private:
    static constexpr double growth = 1.0005;
    static constexpr double too_large = 1e100;
    std::vector<double> trouble_;
    double step_ = 1;
};

/// A random factor for the lifetime of each buffer, so that one order gives different sequences.
class OrderNoise {
public:
    explicit OrderNoise(std::size_t buffers) : factors_(buffers, 1) {}
    /// Sets all factors to 1.
    void clear() noexcept;
    /// Draws new factors. The sequence of draws is the same in every run of the program.
    void draw() noexcept;
    double operator[](std::uint32_t buffer) const noexcept { return factors_[buffer]; }

private:
    // Among 0.1, 0.2, 0.4 and 0.8, the larger values need more steps for MiniMalloc's instances. So
    // does noise on the crowd.
    static constexpr double spread = 0.15;
    std::vector<double> factors_;
    std::minstd_rand random_;
};

/// The state of a search that the sort keys are computed from.
struct OrderView {
    const Problem& problem;
    std::span<const std::uint64_t> slice_bytes;  ///< unplaced bytes of each slice
    const SliceTrouble& trouble;
    const OrderNoise& noise;
};

/// Sorts buffer indices by the keys of `order`; equal buffers by index.
void sort_for_search(std::span<std::uint32_t> buffers, SearchOrder order, const OrderView& view);

/// One run of the search.
struct SearchTurn {
    SearchOrder order;
    bool noisy;
    bool first_with_noise;  ///< this run is the first of those that share one draw
    std::uint64_t nodes;
};

/// A sequence of search runs of growing length. In each round every order runs without noise, with
/// twice the nodes of the round before, until a run is exhaustive. After each round there are short
/// runs with noise, which find packings that no plain order finds. A search that fails late because
/// of an early choice is better restarted than continued (Gomes, Selman and Kautz, "Boosting
/// combinatorial search through randomization", 1998).
class SearchSchedule {
public:
    explicit SearchSchedule(std::size_t buffers) noexcept;

    /// Returns the current run.
    SearchTurn turn() const noexcept;
    /// Moves on to the next run.
    void advance() noexcept;

private:
    std::uint64_t nodes_;
    std::uint64_t round_ = 0;
    std::uint64_t noisy_ = 0;       // draws so far
    std::uint64_t noisy_left_ = 0;  // draws left in this round; 0: the orders run without noise
    std::size_t order_ = 0;
};

}  // namespace tensorpool::planner
