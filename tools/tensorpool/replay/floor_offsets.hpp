#pragma once

/// @file
/// Offsets for blocks whose lifetimes are known, computed before the replay for the allocator
/// `none`.

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace tensorpool::command::replay {

/// Best fit in one range that grows. Adjacent free ranges are joined.
class FloorOffsets {
public:
    /// Returns the offset of a new block. Requires: size and alignment are within the limits of
    /// Step. Throws CommandError if the range would exceed Step::max_bytes.
    std::uint64_t allocate(std::uint64_t bytes, unsigned alignment_log2);
    void deallocate(std::uint64_t offset);
    /// Returns the size of the range in bytes.
    std::uint64_t span_bytes() const noexcept { return end_; }

private:
    void add_free(std::uint64_t begin, std::uint64_t bytes);
    void remove_free(std::uint64_t begin, std::uint64_t bytes);
    std::uint64_t cut(std::uint64_t begin, std::uint64_t bytes, std::uint64_t offset,
                      std::uint64_t needed);

    std::map<std::uint64_t, std::uint64_t> free_;                // begin, bytes
    std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // bytes, begin
    std::map<std::uint64_t, std::uint64_t> used_;                // begin, bytes
    std::uint64_t end_ = 0;
};

}  // namespace tensorpool::command::replay
