#include "plan/planner/search_order.hpp"

#include <bit>

namespace tensorpool::planner {
namespace {

struct Keys {
    std::array<double, 3> keys;
    std::uint32_t buffer;
};

double crowd_of(const Buffer& buffer, std::span<const std::uint64_t> slice_bytes) noexcept {
    std::uint64_t max = 0;
    for (std::uint32_t s = buffer.begin; s < buffer.end; ++s) max = std::max(max, slice_bytes[s]);
    return static_cast<double>(max);
}

std::array<double, 3> keys_of(std::uint32_t i, SearchOrder order, const OrderView& view) noexcept {
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

}  // namespace

void SliceTrouble::add(std::uint32_t slice) noexcept {
    trouble_[slice] += step_;
    step_ *= growth;
    if (step_ < too_large) return;
    for (double& trouble : trouble_) trouble /= too_large;
    step_ /= too_large;
}

double SliceTrouble::max(const Buffer& buffer) const noexcept {
    return *std::max_element(trouble_.begin() + buffer.begin, trouble_.begin() + buffer.end);
}

void OrderNoise::clear() noexcept {
    std::ranges::fill(factors_, 1);
}

void OrderNoise::draw() noexcept {
    constexpr auto min = std::minstd_rand::min();
    constexpr auto range = static_cast<double>(std::minstd_rand::max() - min);
    for (double& factor : factors_) {
        factor = 1 + spread * (2 * static_cast<double>(random_() - min) / range - 1);
    }
}

void sort_for_search(std::span<std::uint32_t> buffers, SearchOrder order, const OrderView& view) {
    std::vector<Keys> keys;
    keys.reserve(buffers.size());
    for (const std::uint32_t i : buffers) keys.push_back({keys_of(i, order, view), i});
    std::ranges::sort(keys, [](const Keys& a, const Keys& b) {
        return a.keys != b.keys ? a.keys > b.keys : a.buffer < b.buffer;
    });
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i] = keys[i].buffer;
}

namespace {

constexpr std::uint64_t max_doublings = 40;
// Among 1, 2, 4, 6 and 8, the value with which MiniMalloc's instances need the fewest steps.
constexpr std::uint64_t nodes_a_buffer = 4;

// Luby, Sinclair and Zuckerman, "Optimal speedup of Las Vegas algorithms" (1993): 1 1 2 1 1 2 4 …
std::uint64_t luby(std::uint64_t i) noexcept {
    while (!std::has_single_bit(i + 1)) i -= std::bit_floor(i) - 1;
    return (i + 1) / 2;
}

}  // namespace

SearchSchedule::SearchSchedule(std::size_t buffers) noexcept
    : nodes_(nodes_a_buffer * std::max<std::uint64_t>(buffers, 64)) {}

SearchTurn SearchSchedule::turn() const noexcept {
    const bool noisy = noisy_left_ != 0;
    return {.order = all_search_orders[order_],
            .noisy = noisy,
            .first_with_noise = noisy && order_ == 0,
            .nodes = noisy ? nodes_ * luby(noisy_) : nodes_ << std::min(round_, max_doublings)};
}

void SearchSchedule::advance() noexcept {
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

}  // namespace tensorpool::planner
