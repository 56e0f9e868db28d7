#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/planner/problem.hpp"

namespace tensorpool::planner {

/// Lists of numbers, stored one after another in one array.
class NumberLists {
public:
    void begin_list() { begins_.push_back(static_cast<std::uint32_t>(numbers_.size())); }
    void add(std::uint32_t number) { numbers_.push_back(number); }
    std::span<const std::uint32_t> operator[](std::uint32_t list) const noexcept {
        const std::uint32_t begin = begins_[list];
        const std::size_t end = list + 1 < begins_.size() ? begins_[list + 1] : numbers_.size();
        return {numbers_.data() + begin, end - begin};
    }
    std::size_t size() const noexcept { return numbers_.size(); }

private:
    std::vector<std::uint32_t> begins_;
    std::vector<std::uint32_t> numbers_;
};

/// Facts about a problem that a search looks up often.
struct SearchTables {
    /// Above these limits a search would rarely end, and its tables would take too much memory.
    static constexpr std::size_t max_buffers = 4096;
    static constexpr std::size_t max_neighbours = 8'000'000;
    static constexpr std::size_t max_members = 8'000'000;

    /// False if the problem is too large for a search; the other members are then incomplete.
    bool made = false;
    NumberLists neighbours;  ///< for each buffer: the buffers that share a slice with it
    NumberLists members;     ///< for each slice: the buffers alive in it
    std::vector<std::uint64_t> slice_bytes;  ///< for each slice: the bytes of its members
};

/// Builds the tables of a problem. Takes time proportional to buffers² + slices × buffers.
SearchTables make_search_tables(const Problem& problem);

}  // namespace tensorpool::planner
