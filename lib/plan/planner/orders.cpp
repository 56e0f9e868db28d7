#include "plan/planner/orders.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "plan/planner/loads.hpp"

namespace tensorpool::planner {
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
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return ranks[a] > ranks[b]; });
    return order;
}

}  // namespace tensorpool::planner
