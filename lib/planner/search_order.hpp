#pragma once

/// @file
/// Which of several buffers that could lie at the same offset a search tries first. No order is
/// best for all problems, so a search takes turns. The first orders are those of minimalloc
/// (Moffitt, ASPLOS 2023); the others, and the noise, solve those of its public instances that
/// these do not.

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "planner/problem.hpp"

namespace tensorpool::planner {

/// The name tells the keys, each descending. `crowd`: the most bytes that are alive in a slice of
/// the buffer's and not yet placed; `time`: how long it lives; `area`: that times its bytes;
/// `slices` and `slice_area`: the same by the number of slices; `trouble`: how often a slice of its
/// was where the search failed, lately counting more.
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

/// How often each slice was where a search failed; what is long ago counts less.
class SliceTrouble {
public:
    explicit SliceTrouble(std::size_t slices) : trouble_(slices, 0) {}
    void add(std::uint32_t slice) noexcept;
    /// The most of any slice that the buffer lives in.
    double most(const Buffer& buffer) const noexcept;

private:
    static constexpr double growth = 1.0005;
    static constexpr double too_large = 1e100;
    std::vector<double> trouble_;
    double step_ = 1;
};

/// A factor for the time of each buffer, so that the same order can be tried in other ways.
class OrderNoise {
public:
    explicit OrderNoise(std::size_t buffers) : factors_(buffers, 1) {}
    /// All 1.
    void clear() noexcept;
    /// Draws new ones: always the same sequence of them.
    void draw() noexcept;
    double operator[](std::uint32_t buffer) const noexcept { return factors_[buffer]; }

private:
    // Of 0.1, 0.2, 0.4 and 0.8 the larger ones need more steps for minimalloc's instances; so does
    // noise for the crowd.
    static constexpr double spread = 0.15;
    std::vector<double> factors_;
    std::minstd_rand random_;
};

/// What a search knows when it puts buffers in order.
struct OrderView {
    const Problem& problem;
    std::span<const std::uint64_t> slice_bytes;  ///< of what is not yet placed
    const SliceTrouble& trouble;
    const OrderNoise& noise;
};

void sort_for_search(std::span<std::uint32_t> buffers, SearchOrder order, const OrderView& view);

}  // namespace tensorpool::planner
