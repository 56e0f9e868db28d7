#pragma once

#include <array>
#include <cmath>
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

inline std::vector<double> loads_of(const Problem& problem) {
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

/// The bytes alive in each slice, with fast queries for the maximum within an interval. Values are
/// rounded to double, which is enough for comparisons.
class Loads {
public:
    explicit Loads(const Problem& problem) : levels_{loads_of(problem)} {
        for (std::size_t half = 1; 2 * half <= problem.slices; half *= 2) {
            const std::vector<double>& halves = levels_.back();
            std::vector<double> level(problem.slices - 2 * half + 1);
            for (std::size_t i = 0; i < level.size(); ++i) {
                level[i] = std::max(halves[i], halves[i + half]);
            }
            levels_.push_back(std::move(level));
        }
    }

    /// Returns the maximum over the slices [begin, end). Requires: begin < end.
    double max(std::uint32_t begin, std::uint32_t end) const {
        const auto level = static_cast<std::size_t>(std::bit_width(end - begin) - 1);
        return std::max(levels_[level][begin], levels_[level][end - (std::size_t{1} << level)]);
    }
    /// Returns the maximum over all slices.
    double max() const { return max(0, static_cast<std::uint32_t>(levels_[0].size())); }

private:
    /// Level k holds, for each slice, the maximum of the 2^k slices that start there.
    std::vector<std::vector<double>> levels_;
};

struct Strategy {
    PlanMethod method;
    Gap gap;
};
// The strategies that win most often come first, because for many buffers only the first is tried.
inline constexpr Strategy strategies[] = {
    {PlanMethod::by_class, Gap::first},    {PlanMethod::by_size, Gap::first},
    {PlanMethod::by_conflicts, Gap::best}, {PlanMethod::by_area, Gap::first},
    {PlanMethod::by_lifetime, Gap::best},  {PlanMethod::by_conflicts, Gap::first},
    {PlanMethod::by_lifetime, Gap::first}, {PlanMethod::by_area, Gap::best},
    {PlanMethod::by_class, Gap::best},     {PlanMethod::by_size, Gap::best},
    {PlanMethod::by_time, Gap::best},      {PlanMethod::by_time, Gap::first}};
// About half a second for all strategies together.
inline constexpr std::uint64_t max_comparisons = 250'000'000;

inline double slices_of(const Buffer& buffer) {
    return static_cast<double>(buffer.end - buffer.begin);
}

/// The buffer with the higher rank comes first. Ranks are doubles because areas exceed 64 bits and
/// an order need not be exact.
using Rank = std::pair<double, double>;

template <class Key>
std::vector<Rank> ranks_by(const Problem& problem, Key key) {
    std::vector<Rank> ranks;
    ranks.reserve(problem.buffers.size());
    for (const Buffer& buffer : problem.buffers) {
        ranks.emplace_back(key(buffer), static_cast<double>(buffer.bytes));
    }
    return ranks;
}

/// Returns the size class: sizes from one power of 2^1.5 to the next form a class.
inline double size_class(const Buffer& buffer) {
    const auto bytes = static_cast<double>(buffer.bytes);
    int exponent = 0;
    std::frexp(bytes * bytes, &exponent);
    const int thirds = exponent / 3;
    return thirds;
}

inline std::vector<Rank> ranks_by_class(const Problem& problem) {
    const Loads loads(problem);
    const double max = loads.max();
    std::vector<Rank> ranks;
    ranks.reserve(problem.buffers.size());
    for (const Buffer& buffer : problem.buffers) {
        const double crowd = loads.max(buffer.begin, buffer.end) / max;
        ranks.emplace_back(size_class(buffer), slices_of(buffer) * (crowd * crowd * crowd * crowd));
    }
    return ranks;
}

/// Ranks each buffer by the bytes of all buffers that share a slice with it, itself included: those
/// that begin before it ends, less those that end before it begins.
inline std::vector<Rank> ranks_by_conflicts(const Problem& problem) {
    std::vector<double> begun(problem.slices + std::size_t{1});
    std::vector<double> ended(problem.slices + std::size_t{1});
    for (const Buffer& buffer : problem.buffers) {
        begun[buffer.begin + std::size_t{1}] += static_cast<double>(buffer.bytes);
        ended[buffer.end] += static_cast<double>(buffer.bytes);
    }
    std::partial_sum(begun.begin(), begun.end(), begun.begin());
    std::partial_sum(ended.begin(), ended.end(), ended.begin());
    return ranks_by(problem,
                    [&](const Buffer& buffer) { return begun[buffer.end] - ended[buffer.begin]; });
}

inline std::vector<Rank> ranks_of(const Problem& problem, PlanMethod method) {
    switch (method) {
        case PlanMethod::by_class:
            return ranks_by_class(problem);
        case PlanMethod::by_area:
            return ranks_by(problem, [](const Buffer& buffer) {
                return static_cast<double>(buffer.bytes) * slices_of(buffer);
            });
        case PlanMethod::by_lifetime:
            return ranks_by(problem, slices_of);
        case PlanMethod::by_conflicts:
            return ranks_by_conflicts(problem);
        case PlanMethod::by_time:
            return ranks_by(
                problem, [](const Buffer& buffer) { return -static_cast<double>(buffer.begin); });
        default:
            return ranks_by(problem,
                            [](const Buffer& buffer) { return static_cast<double>(buffer.bytes); });
    }
}

struct Placing {
    Packing packing;
    std::uint64_t comparisons = 0;  ///< with buffers that might be in the way, about 2 ns each
};

/// Places the buffers in the given order, each among those placed before, and moves none.
inline Placing place(const Problem& problem, std::span<const std::uint32_t> order, Gap gap) {
    TimeWindows windows(problem);
    Placing placing;
    Packing& packing = placing.packing;
    packing.offsets.resize(problem.buffers.size());
    for (const std::uint32_t index : order) {
        const Buffer& buffer = problem.buffers[index];
        const OffsetList& window = windows.around(buffer);
        placing.comparisons += window.size();
        const std::uint64_t offset = window.offset_for(buffer, gap);
        const std::uint64_t top = offset + buffer.bytes;
        windows.add({buffer.begin, buffer.end, offset, top, index});
        packing.offsets[index] = offset;
        packing.peak_bytes = std::max(packing.peak_bytes, top);
    }
    return placing;
}

/// Returns the indices of all buffers in a greedy order. `method` is one of `by_size` to `by_time`.
/// Buffers that compare equal keep their order in the problem.
inline std::vector<std::uint32_t> order_of(const Problem& problem, PlanMethod method) {
    const std::vector<Rank> ranks = ranks_of(problem, method);
    std::vector<std::uint32_t> order(problem.buffers.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, std::greater(), [&](std::uint32_t i) { return ranks[i]; });
    return order;
}

struct Candidate {
    Packing packing;
    PlanMethod method = PlanMethod::none;
};

/// Returns the best packing of the greedy orders. The first order is always tried. Further orders
/// are tried until a packing needs at most `enough_bytes`, the deadline has passed, or about half a
/// second of comparisons is spent.
inline Candidate best_greedy(const Problem& problem, std::uint64_t enough_bytes,
                             Work::Clock::time_point deadline = Work::Clock::time_point::max()) {
    Candidate best;
    best.packing.peak_bytes = UINT64_MAX;
    std::uint64_t comparisons = 0;
    for (const Strategy& strategy : strategies) {
        Placing placing = place(problem, order_of(problem, strategy.method), strategy.gap);
        if (placing.packing.peak_bytes < best.packing.peak_bytes) {
            best = {std::move(placing.packing), strategy.method};
        }
        comparisons += placing.comparisons;
        if (best.packing.peak_bytes <= enough_bytes ||
            comparisons + placing.comparisons > max_comparisons)
            break;
        if (Work::Clock::now() >= deadline) break;
    }
    return best;
}

/// Lowers the peak of a packing until it is at most `enough_bytes`, a capacity is not reached, or
/// the work is over. Buffers above a capacity are moved to other offsets. The buffers in the way
/// there are taken out and placed again, the largest first. A buffer that found no gap becomes more
/// expensive to move, so that other buffers make room the next time. The method is that of Nagata
/// and Bräysy, "A powerful route minimization heuristic for the vehicle routing problem with time
/// windows", 2009, who apply it to the stops of a route. Returns whether the peak was lowered.
bool repack(const Problem& problem, std::uint64_t enough_bytes, Work& work, Packing& packing);

/// Searches for packings with a lower peak than `best`, by repacking and then by exact search. Ends
/// when one needs at most `enough_bytes`, when it is proven that none is lower, or when the work is
/// over. `proven_bytes` are known to be needed before. Returns the bytes proven to be needed.
std::uint64_t shrink(const Problem& problem, std::uint64_t proven_bytes, std::uint64_t enough_bytes,
                     Work& work, Candidate& best);

}  // namespace tensorpool::planner
