#include "planner/orders.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace tensorpool::planner {
namespace {

double slices_of(const Buffer& buffer) {
    return static_cast<double>(buffer.end - buffer.begin);
}

/// For each buffer, the bytes of all that share a slice with it, itself counted: those that begin
/// before it ends, less those that end before it begins.
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

template <class Key>
std::vector<double> keys_of(const Problem& problem, Key key) {
    std::vector<double> keys;
    keys.reserve(problem.buffers.size());
    for (const Buffer& buffer : problem.buffers) keys.push_back(key(buffer));
    return keys;
}

/// What is highest comes first. Doubles: areas pass 64 bits, and an order need not be exact.
std::vector<double> ranks_of(const Problem& problem, PlanMethod method) {
    switch (method) {
        case PlanMethod::by_area:
            return keys_of(problem, [](const Buffer& buffer) {
                return static_cast<double>(buffer.bytes) * slices_of(buffer);
            });
        case PlanMethod::by_lifetime:
            return keys_of(problem, slices_of);
        case PlanMethod::by_conflicts:
            return conflicts_of(problem);
        case PlanMethod::by_time:
            return keys_of(problem,
                           [](const Buffer& buffer) { return -static_cast<double>(buffer.begin); });
        default:
            return keys_of(problem,
                           [](const Buffer& buffer) { return static_cast<double>(buffer.bytes); });
    }
}

}  // namespace

std::vector<std::uint32_t> order_of(const Problem& problem, PlanMethod method) {
    const std::vector<double> ranks = ranks_of(problem, method);
    const std::vector<Buffer>& buffers = problem.buffers;
    std::vector<std::uint32_t> order(buffers.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        if (ranks[a] != ranks[b]) return ranks[a] > ranks[b];
        return buffers[a].bytes > buffers[b].bytes;
    });
    return order;
}

}  // namespace tensorpool::planner
