#pragma once

#include <array>
#include <memory>

#include "base/alignment.hpp"
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

/// Returns a mask of all ones if the two are alive at once, else 0. The answer is close to random,
/// so with branches greedy planning would spend most of its time on mispredictions.
inline std::uint64_t at_once(const Placed& one, const Buffer& buffer) {
    const std::int64_t one_begins_first = std::int64_t{buffer.end} - 1 - one.begin;
    const std::int64_t other_begins_first = std::int64_t{one.end} - 1 - buffer.begin;
    return ~static_cast<std::uint64_t>((one_begins_first | other_begins_first) >> 63);
}

/// Returns the level of the shortest windows. About half as many buffers begin in one of them as
/// are alive at any moment. Shorter windows would hold hardly fewer buffers, and each buffer would
/// have to be added to more of them.
inline unsigned min_shift(const Problem& problem) {
    double alive = 0;
    for (const Buffer& buffer : problem.buffers) alive += buffer.end - buffer.begin;
    const auto count = static_cast<double>(problem.buffers.size());
    const double slices = alive / (2 * count);
    return static_cast<unsigned>(std::bit_width(static_cast<std::uint32_t>(slices)));
}

/// Placed buffers, sorted by offset. They are kept in blocks of at most 128, so that an insertion
/// moves few of them.
class OffsetList {
public:
    void add(const Placed& placed) {
        if (blocks_.empty()) blocks_.push_back({0, std::make_unique<Block>()});
        const auto above = std::ranges::upper_bound(blocks_.begin() + 1, blocks_.end(),
                                                    placed.bottom, {}, &Entry::bottom);
        Block& block = *(above - 1)->block;
        const auto end = block.placed.begin() + static_cast<std::ptrdiff_t>(block.count);
        const auto at =
            std::ranges::upper_bound(block.placed.begin(), end, placed.bottom, {}, &Placed::bottom);
        std::move_backward(at, end, end + 1);
        *at = placed;
        ++size_;
        if (++block.count == block_capacity)
            split(static_cast<std::size_t>(above - blocks_.begin()));
    }
    /// Requires: `placed` is in the list.
    void remove(const Placed& placed) {
        auto entry = std::ranges::lower_bound(blocks_.begin() + 1, blocks_.end(), placed.bottom, {},
                                              &Entry::bottom);
        // Entries at the same offset may continue in later blocks.
        for (--entry;; ++entry) {
            Block& block = *entry->block;
            const auto end = block.placed.begin() + static_cast<std::ptrdiff_t>(block.count);
            const auto at =
                std::ranges::find(block.placed.begin(), end, placed.index, &Placed::index);
            if (at == end) continue;
            std::move(at + 1, end, at);
            --block.count;
            --size_;
            return;
        }
    }
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

    std::uint64_t first_gap(const Buffer& buffer) const {
        const std::uint64_t top = visit_gaps(buffer, [&](std::uint64_t begin, std::uint64_t end) {
            return base::align_up(begin, buffer.alignment) + buffer.bytes <= end;
        });
        return base::align_up(top, buffer.alignment);
    }
    std::uint64_t best_gap(const Buffer& buffer) const {
        std::uint64_t smallest = UINT64_MAX;
        std::uint64_t best = 0;
        const std::uint64_t top = visit_gaps(buffer, [&](std::uint64_t begin, std::uint64_t end) {
            const std::uint64_t offset = base::align_up(begin, buffer.alignment);
            if (end - begin < smallest && offset + buffer.bytes <= end) {
                smallest = end - begin;
                best = offset;
            }
            return false;
        });
        return smallest == UINT64_MAX ? base::align_up(top, buffer.alignment) : best;
    }
    /// Calls `visit(top, bottom)` for each gap between buffers that are alive with `buffer`, from
    /// the lowest up, if the gap is large enough without alignment. Stops when `visit` returns
    /// true. Otherwise returns the end of the highest buffer that is alive with `buffer`.
    template <class Visit>
    std::uint64_t visit_gaps(const Buffer& buffer, Visit visit) const {
        std::uint64_t top = 0;
        for (const Entry& entry : blocks_) {
            const Placed* const end = entry.block->placed.data() + entry.block->count;
            for (const Placed* one = entry.block->placed.data(); one != end; ++one) {
                const std::uint64_t mask = at_once(*one, buffer);
                const std::uint64_t bottom = one->bottom & mask;
                if (top + buffer.bytes <= bottom && visit(top, bottom)) return top;
                top = std::max(top, one->top & mask);
            }
        }
        return top;
    }
    // Moves the upper half of the block before `at` into a new block at `at`.
    void split(std::size_t at) {
        Block& lower = *blocks_[at - 1].block;
        auto upper = std::make_unique<Block>();
        constexpr std::size_t half = block_capacity / 2;
        std::copy(lower.placed.begin() + half, lower.placed.end(), upper->placed.begin());
        lower.count = upper->count = half;
        const std::uint64_t bottom = upper->placed[0].bottom;
        blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(at),
                       {bottom, std::move(upper)});
    }

    std::vector<Entry> blocks_;
    std::size_t size_ = 0;
};

/// All placed buffers, indexed by windows of time. The windows of one level have the same length
/// and overlap by half. Those of the next level are twice as long; the highest level covers all
/// slices. For each buffer there is a window that contains its lifetime and is at most about four
/// times as long, or is one of the shortest. Only buffers in that window can be in its way.
class TimeWindows {
public:
    explicit TimeWindows(const Problem& problem) {
        const auto max_shift = static_cast<unsigned>(std::bit_width(problem.slices));
        for (unsigned shift = std::min(min_shift(problem), max_shift);; ++shift) {
            levels_.push_back({shift, std::vector<OffsetList>((problem.slices >> shift) + 1U)});
            if (problem.slices <= std::uint64_t{2} << shift) return;
        }
    }

    void add(const Placed& placed) {
        visit_windows(placed, [&](OffsetList& window) { window.add(placed); });
    }
    /// Requires: `placed` was added.
    void remove(const Placed& placed) {
        visit_windows(placed, [&](OffsetList& window) { window.remove(placed); });
    }
    /// Returns a window that contains all placed buffers that are alive with `buffer`.
    const OffsetList& around(const Buffer& buffer) const {
        const auto lies_within = [&](const Level& level) {
            return (buffer.end - 1) >> level.shift <= (buffer.begin >> level.shift) + 1;
        };
        const auto level = std::find_if(levels_.begin(), levels_.end() - 1, lies_within);
        return level->windows[buffer.begin >> level->shift];
    }

private:
    template <class Visit>
    void visit_windows(const Placed& placed, Visit visit) {
        for (Level& level : levels_) {
            const std::size_t first = placed.begin >> level.shift;
            const std::size_t last = (placed.end - 1) >> level.shift;
            for (std::size_t i = first == 0 ? 0 : first - 1; i <= last; ++i)
                visit(level.windows[i]);
        }
    }

    /// Window i holds the slices [i, i + 2) << shift.
    struct Level {
        unsigned shift;
        std::vector<OffsetList> windows;
    };
    std::vector<Level> levels_;
};

}  // namespace tensorpool::planner
