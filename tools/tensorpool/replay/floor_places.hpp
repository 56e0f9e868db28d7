#pragma once

/// @file
/// Places for blocks whose whole lives are known: for the floor, which costs nothing.

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace tensorpool::command::replay {

/// Best fit over one range that grows, neighbours joined.
class FloorPlaces {
public:
    /// The offset of a block, of Step's size and alignment at most. Throws CommandError where no
    /// address space would hold all.
    std::uint64_t allocate(std::uint64_t bytes, unsigned alignment_log2);
    void deallocate(std::uint64_t place);
    /// What all together needed.
    std::uint64_t span_bytes() const noexcept { return end_; }

private:
    void add_free(std::uint64_t begin, std::uint64_t bytes);
    void remove_free(std::uint64_t begin, std::uint64_t bytes);
    std::uint64_t cut(std::uint64_t begin, std::uint64_t bytes, std::uint64_t place,
                      std::uint64_t needed);

    std::map<std::uint64_t, std::uint64_t> free_;                // begin, bytes
    std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // bytes, begin
    std::map<std::uint64_t, std::uint64_t> used_;                // begin, bytes
    std::uint64_t end_ = 0;
};

}  // namespace tensorpool::command::replay
