#pragma once

/// @file
/// Problems for the search, and a checker of packings that compares each pair of buffers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/planner/instances.hpp"
#include "plan/planner/problem.hpp"

namespace planner_tests {

using tensorpool::planner::Packing;
using tensorpool::planner::Problem;
using tensorpool::planner::Work;

/// Returns a budget of `max_steps` steps without a deadline.
inline Work steps(std::uint64_t max_steps) {
    return Work(Work::Clock::time_point::max(), max_steps);
}

/// Returns the section with the most buffers. If a cut rectangle has several sections, each of them
/// fills its height.
inline Problem problem_of(const Lifetimes& lifetimes) {
    auto sections = tensorpool::planner::compress(lifetimes);
    return std::move(
        std::max_element(sections.begin(), sections.end(), [](const auto& a, const auto& b) {
            return a.origins.size() < b.origins.size();
        })->problem);
}

/// Returns a description of the first fault of a packing, or an empty string.
inline std::string fault_of(const Problem& problem, const Packing& packing,
                            std::uint64_t capacity) {
    Lifetimes lifetimes;
    for (const auto& buffer : problem.buffers) {
        lifetimes.push_back({buffer.begin, buffer.end, buffer.bytes, buffer.alignment});
    }
    if (packing.peak_bytes > capacity) return "beyond the capacity";
    return fault_of(lifetimes, {.offsets = packing.offsets, .peak_bytes = packing.peak_bytes});
}

/// Returns whether any packing fits, by trying each offset for each buffer.
inline bool fits(const Problem& problem, std::uint64_t capacity,
                 std::vector<std::uint64_t> offsets = {}) {
    const std::size_t i = offsets.size();
    if (i == problem.buffers.size()) return true;
    const auto& buffer = problem.buffers[i];
    const auto is_free = [&](std::uint64_t offset) {
        for (std::size_t j = 0; j < i; ++j) {
            const auto& other = problem.buffers[j];
            if (other.begin < buffer.end && buffer.begin < other.end &&
                offsets[j] < offset + buffer.bytes && offset < offsets[j] + other.bytes) {
                return false;
            }
        }
        return true;
    };
    for (std::uint64_t offset = 0; offset + buffer.bytes <= capacity; offset += buffer.alignment) {
        if (!is_free(offset)) continue;
        offsets.push_back(offset);
        if (fits(problem, capacity, offsets)) return true;
        offsets.pop_back();
    }
    return false;
}

}  // namespace planner_tests
