#include "plan/planner/portfolio.hpp"

#include <cmath>
#include <numeric>
#include <utility>

namespace tensorpool::planner {
namespace {

struct Strategy {
    PlanMethod method;
    Gap gap;
};
// The strategies that win most often come first, because for many buffers only the first is tried.
constexpr Strategy strategies[] = {
    {PlanMethod::by_class, Gap::first},    {PlanMethod::by_size, Gap::first},
    {PlanMethod::by_conflicts, Gap::best}, {PlanMethod::by_area, Gap::first},
    {PlanMethod::by_lifetime, Gap::best},  {PlanMethod::by_conflicts, Gap::first},
    {PlanMethod::by_lifetime, Gap::first}, {PlanMethod::by_area, Gap::best},
    {PlanMethod::by_class, Gap::best},     {PlanMethod::by_size, Gap::best},
    {PlanMethod::by_time, Gap::best},      {PlanMethod::by_time, Gap::first}};
// About half a second for all strategies together.
constexpr std::uint64_t max_comparisons = 250'000'000;

}  // namespace

Candidate best_greedy(const Problem& problem, std::uint64_t enough_bytes,
                      Work::Clock::time_point deadline) {
    Candidate best;
    best.packing.peak_bytes = UINT64_MAX;
    std::uint64_t comparisons = 0;
    for (const Strategy& strategy : strategies) {
        Placing placing = place(problem, order_of(problem, strategy.method), strategy.gap);
        if (placing.packing.peak_bytes < best.packing.peak_bytes) {
            best = {std::move(placing.packing), strategy.method};
        }
        comparisons += placing.comparisons;
        if (best.packing.peak_bytes <= enough_bytes ||
            comparisons + placing.comparisons > max_comparisons)
            break;
        if (Work::Clock::now() >= deadline) break;
    }
    return best;
}

namespace {

double slices_of(const Buffer& buffer) {
    return static_cast<double>(buffer.end - buffer.begin);
}

/// Returns, for each buffer, the bytes of all buffers that share a slice with it, itself included:
/// those that begin before it ends, less those that end before it begins.
std::vector<double> conflicts_of(const Problem& problem) {
    std::vector<double> begun(problem.slices + std::size_t{1});
    std::vector<double> ended(problem.slices + std::size_t{1});
    for (const Buffer& buffer : problem.buffers) {
        begun[buffer.begin + std::size_t{1}] += static_cast<double>(buffer.bytes);
        ended[buffer.end] += static_cast<double>(buffer.bytes);
    }
    std::partial_sum(begun.begin(), begun.end(), begun.begin());
    std::partial_sum(ended.begin(), ended.end(), ended.begin());
    std::vector<double> conflicts;
    conflicts.reserve(problem.buffers.size());
    for (const Buffer& buffer : problem.buffers) {
        conflicts.push_back(begun[buffer.end] - ended[buffer.begin]);
    }
    return conflicts;
}

/// The buffer with the higher rank comes first. Ranks are doubles because areas exceed 64 bits and
/// an order need not be exact.
using Rank = std::pair<double, double>;

template <class Key>
std::vector<Rank> ranks_by(const Problem& problem, Key key) {
    std::vector<Rank> ranks;
    ranks.reserve(problem.buffers.size());
    for (const Buffer& buffer : problem.buffers) {
        ranks.emplace_back(key(buffer), static_cast<double>(buffer.bytes));
    }
    return ranks;
}

/// Returns the size class: sizes from one power of 2^1.5 to the next form a class.
double size_class(const Buffer& buffer) {
    const auto bytes = static_cast<double>(buffer.bytes);
    int exponent = 0;
    std::frexp(bytes * bytes, &exponent);
    const int thirds = exponent / 3;
    return thirds;
}

std::vector<Rank> ranks_by_class(const Problem& problem) {
    const Loads loads(problem);
    const double max = loads.max();
    std::vector<Rank> ranks;
    ranks.reserve(problem.buffers.size());
    for (const Buffer& buffer : problem.buffers) {
        const double crowd = loads.max(buffer.begin, buffer.end) / max;
        ranks.emplace_back(size_class(buffer), slices_of(buffer) * (crowd * crowd * crowd * crowd));
    }
    return ranks;
}

std::vector<Rank> ranks_by_conflicts(const Problem& problem) {
    auto conflicts = conflicts_of(problem);
    auto next = conflicts.begin();
    return ranks_by(problem, [&](const Buffer&) { return *next++; });
}

std::vector<Rank> ranks_of(const Problem& problem, PlanMethod method) {
    switch (method) {
        case PlanMethod::by_class:
            return ranks_by_class(problem);
        case PlanMethod::by_area:
            return ranks_by(problem, [](const Buffer& buffer) {
                return static_cast<double>(buffer.bytes) * slices_of(buffer);
            });
        case PlanMethod::by_lifetime:
            return ranks_by(problem, slices_of);
        case PlanMethod::by_conflicts:
            return ranks_by_conflicts(problem);
        case PlanMethod::by_time:
            return ranks_by(
                problem, [](const Buffer& buffer) { return -static_cast<double>(buffer.begin); });
        default:
            return ranks_by(problem,
                            [](const Buffer& buffer) { return static_cast<double>(buffer.bytes); });
    }
}

}  // namespace

std::vector<std::uint32_t> order_of(const Problem& problem, PlanMethod method) {
    const std::vector<Rank> ranks = ranks_of(problem, method);
    std::vector<std::uint32_t> order(problem.buffers.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t i) { return ranks[i]; });
    return order;
}

Placing place(const Problem& problem, std::span<const std::uint32_t> order, Gap gap) {
    TimeWindows windows(problem);
    Placing placing;
    Packing& packing = placing.packing;
    packing.offsets.resize(problem.buffers.size());
    for (const std::uint32_t index : order) {
        const Buffer& buffer = problem.buffers[index];
        const OffsetList& window = windows.around(buffer);
        placing.comparisons += window.size();
        const std::uint64_t offset = window.offset_for(buffer, gap);
        const std::uint64_t top = offset + buffer.bytes;
        windows.add({buffer.begin, buffer.end, offset, top, index});
        packing.offsets[index] = offset;
        packing.peak_bytes = std::max(packing.peak_bytes, top);
    }
    return placing;
}

namespace {

std::vector<double> loads_of(const Problem& problem) {
    std::vector<std::uint64_t> changes(problem.slices + std::size_t{1});
    for (const Buffer& buffer : problem.buffers) {
        changes[buffer.begin] += buffer.bytes;
        changes[buffer.end] -= buffer.bytes;
    }
    std::vector<double> loads(problem.slices);
    std::uint64_t load = 0;
    for (std::size_t i = 0; i < loads.size(); ++i) {
        load += changes[i];
        loads[i] = static_cast<double>(load);
    }
    return loads;
}

}  // namespace

Loads::Loads(const Problem& problem) : levels_{loads_of(problem)} {
    for (std::size_t half = 1; 2 * half <= problem.slices; half *= 2) {
        const std::vector<double>& halves = levels_.back();
        std::vector<double> level(problem.slices - 2 * half + 1);
        for (std::size_t i = 0; i < level.size(); ++i) {
            level[i] = std::max(halves[i], halves[i + half]);
        }
        levels_.push_back(std::move(level));
    }
}

double Loads::max(std::uint32_t begin, std::uint32_t end) const {
    const auto level = static_cast<std::size_t>(std::bit_width(end - begin) - 1);
    return std::max(levels_[level][begin], levels_[level][end - (std::size_t{1} << level)]);
}

}  // namespace tensorpool::planner
