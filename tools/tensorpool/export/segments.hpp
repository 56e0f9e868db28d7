#pragma once

/// @file
/// The blocks at a moment in the form of PyTorch's snapshots: in segments without gaps.

#include <cstdint>
#include <span>
#include <vector>

#include "export/moment.hpp"
#include "export/slabs.hpp"

namespace tensorpool::command::export_ {

struct SegmentBlock {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t requested_bytes = 0;  ///< at most `bytes`; 0 for free blocks
    std::uint32_t stack = 0;
    bool is_alive = false;
    bool is_deferred = false;  ///< alive, but already freed by its owner
};

/// A range of addresses from which one pool, arena or scratch took blocks. Its blocks tile it: each
/// begins where the previous one ends.
struct Segment {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t source = 0;
    std::uint16_t stream = 0;  ///< of its first block
    std::vector<SegmentBlock> blocks;
};

/// Returns the segments of one process, or of one device's allocator, in order of address. `lives`
/// are the indices of its blocks. For a device's allocator, `source`, the segments are its slabs,
/// which `slabs` holds as of the moment. The trace does not record what a pool reserves. The
/// segments of a pool, and those that a device's allocator made before the recording, are therefore
/// the addresses that any block has had so far. Gaps of less than 4 MiB, the growth step of pools,
/// are included. Blocks that overlap, which happens if entries were dropped, are cut.
std::vector<Segment> segments_of(const History& history, std::span<const std::uint32_t> lifetimes,
                                 Moment moment, const Slabs& slabs = {}, std::uint32_t source = 0);

}  // namespace tensorpool::command::export_
