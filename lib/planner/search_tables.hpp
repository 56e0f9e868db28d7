#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/problem.hpp"

namespace tensorpool::planner {

/// Lists of numbers, one after another in one piece of memory.
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

/// What a search asks of a problem again and again.
struct SearchTables {
    /// Beyond these a search would hardly end, and its tables take too much.
    static constexpr std::size_t max_buffers = 4096;
    static constexpr std::size_t max_neighbours = 8'000'000;
    static constexpr std::size_t max_members = 8'000'000;

    /// False where the problem is too large for a search; then nothing else holds.
    bool made = false;
    NumberLists neighbours;  ///< of a buffer: those that are alive at some moment with it
    NumberLists members;     ///< of a slice: the buffers alive in it
    std::vector<std::uint64_t> slice_bytes;  ///< of those together
};

SearchTables make_search_tables(const Problem& problem);

}  // namespace tensorpool::planner
