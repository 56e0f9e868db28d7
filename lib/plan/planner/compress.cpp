#include "plan/planner/problem.hpp"

#include <numeric>
#include <queue>
#include <utility>

#include "base/alignment.hpp"

namespace tensorpool::planner {
namespace {

struct Event {
    std::int64_t time;
    bool begins;  // ends come first: half-open intervals that only touch do not overlap
    std::uint32_t buffer;

    friend auto operator<=>(const Event&, const Event&) = default;
};

std::vector<Event> events_of(std::span<const TensorLifetime> lifetimes) {
    std::vector<Event> events;
    events.reserve(2 * lifetimes.size());
    for (std::uint32_t i = 0; i < lifetimes.size(); ++i) {
        if (lifetimes[i].bytes == 0) continue;
        events.push_back({lifetimes[i].begin, true, i});
        events.push_back({lifetimes[i].end, false, i});
    }
    std::sort(events.begin(), events.end());
    return events;
}

// Unsigned, because two times may lie further apart than std::int64_t can express.
std::uint64_t duration_of(const TensorLifetime& lifetime) {
    return static_cast<std::uint64_t>(lifetime.end) - static_cast<std::uint64_t>(lifetime.begin);
}

/// Takes events in order. A beginning that follows an end opens a new slice. Buffers that begin
/// before the next end join that slice; buffers that end before the next beginning end with it.
class Sweep {
public:
    explicit Sweep(std::span<const TensorLifetime> lifetimes)
        : lifetimes_(lifetimes), positions_(lifetimes.size()) {}

    void take(const Event& event) { event.begins ? begin(event.buffer) : end(event.buffer); }
    std::vector<Section> sections() && { return std::move(sections_); }

private:
    void begin(std::uint32_t index) {
        if (alive_++ == 0) sections_.emplace_back();
        Section& section = sections_.back();
        if (ended_ || section.origins.empty()) ++section.problem.slices;
        ended_ = false;
        positions_[index] = static_cast<std::uint32_t>(section.origins.size());
        const TensorLifetime& lifetime = lifetimes_[index];
        section.problem.buffers.push_back({section.problem.slices - 1, 0, lifetime.bytes,
                                           lifetime.alignment, duration_of(lifetime)});
        section.origins.push_back(index);
    }
    void end(std::uint32_t index) {
        Problem& problem = sections_.back().problem;
        problem.buffers[positions_[index]].end = problem.slices;
        ended_ = true;
        --alive_;
    }

    std::span<const TensorLifetime> lifetimes_;
    std::vector<std::uint32_t> positions_;  ///< index of each buffer in its section
    std::vector<Section> sections_;
    std::size_t alive_ = 0;
    bool ended_ = false;  ///< a buffer has ended since the last beginning
};

}  // namespace

std::vector<Section> compress(std::span<const TensorLifetime> lifetimes) {
    Sweep sweep(lifetimes);
    for (const Event& event : events_of(lifetimes)) sweep.take(event);
    return std::move(sweep).sections();
}

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
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return buffers[i].begin; });
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
