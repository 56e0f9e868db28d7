#include "plan/planner/compress.hpp"

#include <algorithm>
#include <cstddef>

namespace tensorpool::planner {
namespace {

struct Event {
    std::int64_t time;
    std::uint32_t buffer;
    bool begins;

    // Ends come first: half-open intervals that only touch do not overlap.
    friend bool operator<(const Event& a, const Event& b) {
        if (a.time != b.time) return a.time < b.time;
        if (a.begins != b.begins) return b.begins;
        return a.buffer < b.buffer;
    }
};

std::vector<Event> events_of(std::span<const TensorLifetime> lifetimes) {
    std::vector<Event> events;
    events.reserve(2 * lifetimes.size());
    for (std::uint32_t i = 0; i < lifetimes.size(); ++i) {
        if (lifetimes[i].bytes == 0) continue;
        events.push_back({lifetimes[i].begin, i, true});
        events.push_back({lifetimes[i].end, i, false});
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

}  // namespace tensorpool::planner
