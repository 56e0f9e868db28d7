#pragma once

/// @file
/// Blocks at a moment as PyTorch's snapshots want them: in segments without gaps.

#include <cstdint>
#include <span>
#include <vector>

#include "export/moment.hpp"
#include "export/slabs.hpp"

namespace tensorpool::command::export_ {

struct SegmentBlock {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t requested_bytes = 0;  ///< at most `bytes`; 0 where it is free
    std::uint32_t stack = 0;
    bool is_alive = false;
    bool is_deferred = false;  ///< alive, and its owner has freed it
};

/// A stretch of addresses that one pool, arena or scratch took blocks from. Its blocks tile it:
/// each begins where the one before ends.
struct Segment {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint32_t source = 0;
    std::uint16_t stream = 0;  ///< of its first block
    std::vector<SegmentBlock> blocks;
};

/// Of one process, or of one device's allocator, whose blocks `lives` names by their numbers; by
/// address. A device's allocator, `source`, tells its slabs, which `slabs` has at the moment. The
/// trace does not tell what a pool holds: here, and of an allocator what it took before the
/// recording, it is all addresses that any block had up to then, and gaps among them of less than 4
/// MiB, by which pools grow. Blocks that lie over each other, as where entries were dropped, are
/// cut.
std::vector<Segment> segments_of(const History& history, std::span<const std::uint32_t> lives,
                                 Moment moment, const Slabs& slabs = {}, std::uint32_t source = 0);

}  // namespace tensorpool::command::export_
