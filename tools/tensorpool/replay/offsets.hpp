#pragma once

/// @file
/// The blocks of one process in the order in which they are allocated and freed, and offsets for
/// them that are computed before the replay.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <tensorpool/memory_plan.hpp>

#include "formats/trace/recording.hpp"

namespace tensorpool::command::replay {

using trace::LifetimeOrder;

/// Returns the blocks of one process that can be replayed. Throws CommandError if one exceeds the
/// limits of Step.
LifetimeOrder blocks_of(const trace::Recording& recording, std::uint32_t process);

/// Returns a plan of all blocks, in the order of `order`. Blocks are aligned to 64
/// bytes, as in the pool, or to the requested alignment if that is larger. Takes at most a second,
/// or as long as the first greedy order takes.
MemoryPlan planned_offsets(const trace::Recording& recording, const LifetimeOrder& order);

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
