#include "serve/figures.hpp"

#include <limits>

namespace tensorpool::command::serve {
namespace {

constexpr const char* names[figure_count] = {
    "in_use",       "magazine",    "depot",          "span",        "extent",
    "capacity",     "limit",       "from_magazines", "from_depots", "from_spans",
    "from_extents", "from_system", "allocated",      "rounding",    "hit_ratio"};

void set_rates(Figures& figures, const PoolRates& rates) {
    const auto set = [&](Figure figure, double value) {
        at(figures, figure) = static_cast<float>(value);
    };
    set(Figure::from_magazines, rates.from_magazines);
    set(Figure::from_depots, rates.from_depots);
    set(Figure::from_spans, rates.from_spans);
    set(Figure::from_extents, rates.from_extents);
    set(Figure::from_system, rates.from_system);
    set(Figure::allocated, rates.allocated_bytes);
    set(Figure::rounding, rates.rounding_ratio);
    set(Figure::hit_ratio, rates.hit_ratio);
}

}  // namespace

const char* name_of(Figure figure) noexcept {
    return names[static_cast<std::size_t>(figure)];
}

Figures figures_of(const PoolStatistics& pool, const PoolRates* rates) noexcept {
    Figures figures;
    figures.fill(std::numeric_limits<float>::quiet_NaN());
    const auto set = [&](Figure figure, std::uint64_t bytes) {
        at(figures, figure) = static_cast<float>(bytes);
    };
    set(Figure::in_use, pool.in_use_bytes);
    set(Figure::magazine, pool.parked_bytes);
    set(Figure::depot, pool.depot_bytes);
    set(Figure::span, pool.span_bytes);
    set(Figure::extent, pool.cached_bytes + pool.free_bytes);
    set(Figure::capacity, pool.capacity_bytes);
    if (pool.limit_bytes != 0) set(Figure::limit, pool.limit_bytes);
    if (rates != nullptr) set_rates(figures, *rates);
    return figures;
}

}  // namespace tensorpool::command::serve
