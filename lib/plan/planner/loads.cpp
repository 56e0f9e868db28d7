#include "plan/planner/loads.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace tensorpool::planner {
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
