#pragma once

#include <array>
#include <random>

#include "plan/planner/problem.hpp"

/// The order in which a search tries buffers that could lie at the same offset. No order is best
/// for all problems, so a search alternates between them. The first orders are those of MiniMalloc
/// (Moffitt, ASPLOS 2023). The others, and the noise, solve those of its public instances that the
/// first do not.

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
    void add(std::uint32_t slice) noexcept {
        trouble_[slice] += step_;
        step_ *= growth;
        if (step_ < too_large) return;
        for (double& trouble : trouble_) trouble /= too_large;
        step_ /= too_large;
    }
    /// Returns the maximum count over the slices in which the buffer is alive.
    double max(const Buffer& buffer) const noexcept {
        return *std::max_element(trouble_.begin() + buffer.begin, trouble_.begin() + buffer.end);
    }

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
    void clear() noexcept { std::ranges::fill(factors_, 1); }
    /// Draws new factors. The sequence of draws is the same in every run of the program.
    void draw() noexcept {
        constexpr auto min = std::minstd_rand::min();
        constexpr auto range = static_cast<double>(std::minstd_rand::max() - min);
        for (double& factor : factors_) {
            factor = 1 + spread * (2 * static_cast<double>(random_() - min) / range - 1);
        }
    }
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

struct SearchTurn {
    SearchOrder order;
    bool noisy;
    bool first_with_noise;  ///< this run is the first of those that share one draw
    std::uint64_t nodes;
};

inline constexpr std::uint64_t max_doublings = 40;

// Among 1, 2, 4, 6 and 8, the value with which MiniMalloc's instances need the fewest steps.
inline constexpr std::uint64_t nodes_a_buffer = 4;

// Luby, Sinclair and Zuckerman, "Optimal speedup of Las Vegas algorithms" (1993): 1 1 2 1 1 2 4 …
inline std::uint64_t luby(std::uint64_t i) noexcept {
    while (!std::has_single_bit(i + 1)) i -= std::bit_floor(i) - 1;
    return (i + 1) / 2;
}

/// A sequence of search runs of growing length. In each round every order runs without noise, with
/// twice the nodes of the round before, until a run is exhaustive. After each round there are short
/// runs with noise, which find packings that no plain order finds. A search that fails late because
/// of an early choice is better restarted than continued (Gomes, Selman and Kautz, "Boosting
/// combinatorial search through randomization", 1998).
class SearchSchedule {
public:
    explicit SearchSchedule(std::size_t buffers) noexcept
        : nodes_(nodes_a_buffer * std::max<std::uint64_t>(buffers, 64)) {}

    SearchTurn turn() const noexcept {
        const bool noisy = noisy_left_ != 0;
        return {.order = all_search_orders[order_],
                .noisy = noisy,
                .first_with_noise = noisy && order_ == 0,
                .nodes = noisy ? nodes_ * luby(noisy_) : nodes_ << std::min(round_, max_doublings)};
    }
    void advance() noexcept {
        if (++order_ < all_search_orders.size()) return;
        order_ = 0;
        if (noisy_left_ == 0) {
            noisy_left_ = std::uint64_t{1} << std::min(round_, max_doublings);
            ++round_;
        } else if (--noisy_left_ == 0) {
            return;
        }
        ++noisy_;
    }

private:
    std::uint64_t nodes_;
    std::uint64_t round_ = 0;
    std::uint64_t noisy_ = 0;       // draws so far
    std::uint64_t noisy_left_ = 0;  // draws left in this round; 0: the orders run without noise
    std::size_t order_ = 0;
};

struct Keys {
    std::array<double, 3> keys;
    std::uint32_t buffer;
};

inline double crowd_of(const Buffer& buffer, std::span<const std::uint64_t> slice_bytes) noexcept {
    std::uint64_t max = 0;
    for (std::uint32_t s = buffer.begin; s < buffer.end; ++s) max = std::max(max, slice_bytes[s]);
    return static_cast<double>(max);
}

inline std::array<double, 3> keys_of(std::uint32_t i, SearchOrder order,
                                     const OrderView& view) noexcept {
    const Buffer& buffer = view.problem.buffers[i];
    const auto bytes = static_cast<double>(buffer.bytes);
    const double crowd = crowd_of(buffer, view.slice_bytes);
    const double time = static_cast<double>(buffer.duration) * view.noise[i];
    const double slices = (buffer.end - buffer.begin) * view.noise[i];
    switch (order) {
        case SearchOrder::crowd_time_area:
            return {crowd, time, time * bytes};
        case SearchOrder::slice_area_crowd:
            return {slices * bytes, crowd, slices};
        case SearchOrder::crowd_slice_area:
            return {crowd, slices * bytes, slices};
        case SearchOrder::trouble_time_area:
            return {view.trouble.max(buffer), time, time * bytes};
        case SearchOrder::time_area_crowd:
            return {time, time * bytes, crowd};
        case SearchOrder::trouble_slices_area:
            break;
    }
    return {view.trouble.max(buffer), slices, slices * bytes};
}

/// Sorts buffer indices by the keys of `order`; equal buffers by index.
inline void sort_for_search(std::span<std::uint32_t> buffers, SearchOrder order,
                            const OrderView& view) {
    std::vector<Keys> keys;
    keys.reserve(buffers.size());
    for (const std::uint32_t i : buffers) keys.push_back({keys_of(i, order, view), i});
    std::ranges::sort(keys, [](const Keys& a, const Keys& b) {
        return a.keys != b.keys ? a.keys > b.keys : a.buffer < b.buffer;
    });
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i] = keys[i].buffer;
}

}  // namespace tensorpool::planner
