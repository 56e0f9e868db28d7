#include "plan/planner/lower_bound.hpp"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "base/alignment.hpp"

namespace tensorpool::planner {
namespace {

std::uint64_t shared_alignment(const Problem& problem) {
    std::uint64_t min_alignment = std::uint64_t{1} << 63;
    for (const Buffer& buffer : problem.buffers)
        min_alignment = std::min(min_alignment, buffer.alignment);
    return min_alignment;
}

std::vector<std::uint32_t> by_begin(const std::vector<Buffer>& buffers) {
    std::vector<std::uint32_t> order(buffers.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return buffers[a].begin < buffers[b].begin;
    });
    return order;
}

/// The buffers alive in the slice of the last `bytes_at` call.
class Slice {
public:
    explicit Slice(std::uint64_t alignment) : alignment_(alignment) {}

    void add(const Buffer& buffer) {
        const std::uint64_t rounded = base::align_up(buffer.bytes, alignment_);
        bytes_ += rounded;
        ends_.emplace(buffer.end, rounded);
        paddings_.emplace(rounded - buffer.bytes, buffer.end);
    }
    /// Returns the minimum bytes that a packing of this slice needs. Slices must not decrease from
    /// call to call.
    std::uint64_t bytes_at(std::uint32_t slice) {
        for (; !ends_.empty() && ends_.top().first <= slice; ends_.pop()) {
            bytes_ -= ends_.top().second;
        }
        while (!paddings_.empty() && paddings_.top().second <= slice) paddings_.pop();
        return bytes_ - (paddings_.empty() ? 0 : paddings_.top().first);
    }

private:
    using Ending = std::pair<std::uint32_t, std::uint64_t>;
    using Padding = std::pair<std::uint64_t, std::uint32_t>;
    std::uint64_t alignment_;
    std::uint64_t bytes_ = 0;
    std::priority_queue<Ending, std::vector<Ending>, std::greater<>> ends_;
    std::priority_queue<Padding> paddings_;
};

}  // namespace

std::uint64_t lower_bound(const Problem& problem) {
    Slice slice(shared_alignment(problem));
    std::uint64_t bound = 0;
    const std::vector<std::uint32_t> order = by_begin(problem.buffers);
    for (std::size_t i = 0; i < order.size();) {
        const std::uint32_t now = problem.buffers[order[i]].begin;
        for (; i < order.size() && problem.buffers[order[i]].begin == now; ++i) {
            slice.add(problem.buffers[order[i]]);
        }
        bound = std::max(bound, slice.bytes_at(now));
    }
    return bound;
}

std::uint64_t granule(const Problem& problem) {
    std::uint64_t common = 0;
    for (const Buffer& buffer : problem.buffers) {
        common = std::gcd(common, buffer.bytes);
        if (buffer.alignment != 1) common = std::gcd(common, buffer.alignment);
    }
    return common;
}

}  // namespace tensorpool::planner
