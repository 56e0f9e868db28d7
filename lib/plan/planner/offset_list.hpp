#pragma once

#include <array>
#include <memory>

#include "plan/planner/problem.hpp"

namespace tensorpool::planner {

/// The choice among the gaps between buffers that are alive with a new one. If the buffer fits into
/// no gap, it goes above all of them.
enum class Gap {
    first,  ///< the lowest gap that fits
    best,   ///< the smallest gap that fits
};

/// A placed buffer: alive in the slices [begin, end), at the bytes [bottom, top).
struct Placed {
    std::uint32_t begin;
    std::uint32_t end;
    std::uint64_t bottom;
    std::uint64_t top;
    std::uint32_t index;  ///< of the buffer in its problem
};

/// Placed buffers, sorted by offset. They are kept in blocks of at most 128, so that an insertion
/// moves few of them.
class OffsetList {
public:
    void add(const Placed& placed);
    /// Requires: `placed` is in the list.
    void remove(const Placed& placed);
    /// Calls `visit` for each placed buffer that is alive with `buffer`, the lowest first.
    template <class Visit>
    void visit_alive(const Buffer& buffer, Visit visit) const {
        for (const Entry& entry : blocks_) {
            for (std::size_t i = 0; i < entry.block->count; ++i) {
                const Placed& one = entry.block->placed[i];
                if (one.begin < buffer.end && one.end > buffer.begin) visit(one);
            }
        }
    }
    /// Returns the offset at which the buffer fits, aligned, by the given choice of gap.
    std::uint64_t offset_for(const Buffer& buffer, Gap gap) const {
        return gap == Gap::first ? first_gap(buffer) : best_gap(buffer);
    }
    std::size_t size() const noexcept { return size_; }

private:
    static constexpr std::size_t block_capacity = 128;
    struct Block {
        std::size_t count = 0;
        std::array<Placed, block_capacity> placed;
    };
    struct Entry {
        /// At most the bottom of the block's first entry, and at least that of all entries before.
        std::uint64_t bottom;
        std::unique_ptr<Block> block;
    };

    std::uint64_t first_gap(const Buffer& buffer) const;
    std::uint64_t best_gap(const Buffer& buffer) const;
    template <class Visit>
    std::uint64_t visit_gaps(const Buffer& buffer, Visit visit) const;
    void split(std::size_t at);

    std::vector<Entry> blocks_;
    std::size_t size_ = 0;
};

/// All placed buffers, indexed by windows of time. The windows of one level have the same length
/// and overlap by half. Those of the next level are twice as long; the highest level covers all
/// slices. For each buffer there is a window that contains its lifetime and is at most about four
/// times as long, or is one of the shortest. Only buffers in that window can be in its way.
class TimeWindows {
public:
    explicit TimeWindows(const Problem& problem);

    void add(const Placed& placed);
    /// Requires: `placed` was added.
    void remove(const Placed& placed);
    /// Returns a window that contains all placed buffers that are alive with `buffer`.
    const OffsetList& around(const Buffer& buffer) const;

private:
    template <class Visit>
    void visit_windows(const Placed& placed, Visit visit);

    /// Window i holds the slices [i, i + 2) << shift.
    struct Level {
        unsigned shift;
        std::vector<OffsetList> windows;
    };
    std::vector<Level> levels_;
};

}  // namespace tensorpool::planner
