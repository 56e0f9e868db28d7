#include "planner/place.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/alignment.hpp"

namespace tensorpool::planner {
namespace {

struct Lifetime {
    std::uint32_t begin;
    std::uint32_t end;
};
struct Range {
    std::uint64_t begin;
    std::uint64_t end;
};

/// Buffers that have their places, the lowest first. Lifetimes lie apart, for most of a scan looks
/// at nothing else.
class Placed {
public:
    explicit Placed(std::size_t count) {
        lifetimes_.reserve(count);
        ranges_.reserve(count);
    }

    std::uint64_t offset_for(const Buffer& buffer, Gap gap) const {
        std::uint64_t top = 0;
        std::uint64_t offset = 0;
        std::uint64_t least = UINT64_MAX;
        for (std::size_t i = 0; i < lifetimes_.size(); ++i) {
            if (lifetimes_[i].begin >= buffer.end || lifetimes_[i].end <= buffer.begin) continue;
            const Range& range = ranges_[i];
            const std::uint64_t start = base::align_up(top, buffer.alignment);
            if (start + buffer.bytes <= range.begin && range.begin - top < least) {
                if (gap == Gap::first) return start;
                least = range.begin - top;
                offset = start;
            }
            top = std::max(top, range.end);
        }
        return least == UINT64_MAX ? base::align_up(top, buffer.alignment) : offset;
    }

    void add(const Buffer& buffer, std::uint64_t offset) {
        const auto at =
            std::upper_bound(ranges_.begin(), ranges_.end(), offset,
                             [](std::uint64_t o, const Range& range) { return o < range.begin; });
        lifetimes_.insert(lifetimes_.begin() + (at - ranges_.begin()), {buffer.begin, buffer.end});
        ranges_.insert(at, {offset, offset + buffer.bytes});
    }

private:
    std::vector<Lifetime> lifetimes_;
    std::vector<Range> ranges_;
};

}  // namespace

Packing place(const Problem& problem, std::span<const std::uint32_t> order, Gap gap) {
    Placed placed(order.size());
    Packing packing;
    packing.offsets.resize(problem.buffers.size());
    for (const std::uint32_t index : order) {
        const Buffer& buffer = problem.buffers[index];
        const std::uint64_t offset = placed.offset_for(buffer, gap);
        placed.add(buffer, offset);
        packing.offsets[index] = offset;
        packing.peak_bytes = std::max(packing.peak_bytes, offset + buffer.bytes);
    }
    return packing;
}

}  // namespace tensorpool::planner
