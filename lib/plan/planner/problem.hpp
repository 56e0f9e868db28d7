#pragma once

#include <numeric>
#include <queue>
#include <utility>

#include "base/alignment.hpp"

#include <algorithm>

#include <tensorpool/memory_plan.hpp>

/// The packing problem. Times are ranks (slices), independent of the caller's clock.

namespace tensorpool::planner {

/// The maximum number of buffers in a plan. Buffers are numbered in 32 bits, and so are their
/// beginnings and ends together.
inline constexpr std::size_t max_buffers = (std::size_t{1} << 31) - 1;
/// The maximum sum, in bytes, of all sizes and of the worst padding of each buffer (its alignment
/// less 1).
inline constexpr std::uint64_t max_bytes = std::uint64_t{1} << 63;

void check_count(std::size_t buffers);

/// Throws std::invalid_argument if the lifetimes cannot be planned. The message names the first
/// buffer whose interval is empty or reversed, whose alignment is not a power of two, or whose
/// bytes make the sum exceed `max_bytes`.
void check_lifetimes(std::span<const TensorLifetime> lifetimes);

/// The budget of a search, in steps and in time. The clock is read once in 256 steps only. If it
/// goes back, the deadline goes back with it.
class Work {
public:
    using Clock = std::chrono::steady_clock;
    /// A `max_steps` of 0 means no limit on steps.
    Work(Clock::time_point deadline, std::uint64_t max_steps) noexcept
        : deadline_(deadline), max_steps_(max_steps == 0 ? UINT64_MAX : max_steps) {}

    /// Takes a step. Returns false once the budget is spent, and then for all later calls.
    bool step() noexcept {
        if (++steps_ < next_read_) return true;
        return read_clock();
    }
    bool over() const noexcept { return over_; }
    std::uint64_t steps() const noexcept { return steps_; }

    /// Returns a budget of at most `steps` of the remaining ones, for a part of the search. `spend`
    /// then counts the steps that the part took, at least one.
    Work part(std::uint64_t steps) const noexcept {
        Work part(deadline_, 0);
        part.max_steps_ = std::min(steps, max_steps_ - std::min(steps_, max_steps_));
        return part;
    }
    void spend(const Work& part) noexcept {
        steps_ += std::max(part.steps_, std::uint64_t{1});
        read_clock();
    }

    /// Returns whether the deadline has passed at this time, the clock's present one.
    bool is_past_deadline(Clock::time_point now) noexcept {
        if (now < last_read_ && deadline_ != Clock::time_point::max()) {
            deadline_ = now + (deadline_ - last_read_);
        }
        last_read_ = now;
        return now >= deadline_;
    }

private:
    static constexpr std::uint64_t steps_between_reads = 256;
    bool read_clock() noexcept {
        if (over_ || steps_ > max_steps_ || is_past_deadline(Clock::now())) over_ = true;
        // Once the work is over, every step comes here and returns false.
        next_read_ =
            over_ ? 0
                  : steps_ + (max_steps_ - steps_ < steps_between_reads ? 1 : steps_between_reads);
        return !over_;
    }

    Clock::time_point deadline_;
    Clock::time_point last_read_ = Clock::time_point::min();
    std::uint64_t max_steps_;
    std::uint64_t steps_ = 0;
    std::uint64_t next_read_ = 0;
    bool over_ = false;
};

/// A buffer that is alive in the slices [begin, end). `bytes` is above 0.
struct Buffer {
    std::uint32_t begin;
    std::uint32_t end;
    std::uint64_t bytes;
    std::uint64_t alignment;
    std::uint64_t duration;  ///< by the caller's clock; used for weights, not for placement
};

/// A set of buffers whose times are numbered in slices. A slice is an interval in which no buffer
/// begins or ends. Every slice that holds more buffers than its neighbours is kept, so two buffers
/// are alive at once if and only if they share a slice. At least one buffer is alive in each slice.
/// The sizes and the alignments less one of all buffers sum up to at most 2^63. So the offset of a
/// buffer that lies on another one, or at its own alignment, cannot overflow.
struct Problem {
    std::vector<Buffer> buffers;
    std::uint32_t slices = 0;
};

struct Packing {
    std::vector<std::uint64_t> offsets;
    std::uint64_t peak_bytes = 0;
};

/// A set of buffers that are never alive together with those of other sections. Each section is
/// packed separately from offset 0 up; the section that needs the most bytes determines the peak.
struct Section {
    Problem problem;
    std::vector<std::uint32_t> origins;  ///< the caller's index of each buffer
};

struct Event {
    std::int64_t time;
    bool begins;  // ends come first: half-open intervals that only touch do not overlap
    std::uint32_t buffer;

    friend auto operator<=>(const Event&, const Event&) = default;
};

inline std::vector<Event> events_of(std::span<const TensorLifetime> lifetimes) {
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
inline std::uint64_t duration_of(const TensorLifetime& lifetime) {
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

inline std::uint64_t shared_alignment(const Problem& problem) {
    std::uint64_t min_alignment = std::uint64_t{1} << 63;
    for (const Buffer& buffer : problem.buffers)
        min_alignment = std::min(min_alignment, buffer.alignment);
    return min_alignment;
}

inline std::vector<std::uint32_t> by_begin(const std::vector<Buffer>& buffers) {
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

/// Returns the maximum bytes alive in one slice, which no packing can go below. Sizes are rounded
/// up to the smallest alignment of all buffers, because padding follows each buffer but the
/// highest. The largest padding of the slice is therefore not counted.
inline std::uint64_t lower_bound(const Problem& problem) {
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

/// Returns a number of bytes that divides all offsets and ends of some minimum packing. It divides
/// those of every packing whose buffers lie as low as the buffers below them and their own
/// alignments allow.
inline std::uint64_t granule(const Problem& problem) {
    std::uint64_t common = 0;
    for (const Buffer& buffer : problem.buffers) {
        common = std::gcd(common, buffer.bytes);
        if (buffer.alignment != 1) common = std::gcd(common, buffer.alignment);
    }
    return common;
}

/// Returns the sections in the order of time. The buffers of a section are sorted by their
/// beginnings, then by the caller's order. Buffers of 0 bytes are in no section.
/// Requires: the lifetimes passed `check_lifetimes`.
inline std::vector<Section> compress(std::span<const TensorLifetime> lifetimes) {
    Sweep sweep(lifetimes);
    for (const Event& event : events_of(lifetimes)) sweep.take(event);
    return std::move(sweep).sections();
}

}  // namespace tensorpool::planner
