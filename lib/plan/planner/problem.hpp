#pragma once

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

/// Throws std::invalid_argument if `buffers` exceeds `max_buffers`.
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

/// An offset for each buffer of a problem.
struct Packing {
    std::vector<std::uint64_t> offsets;
    std::uint64_t peak_bytes = 0;
};

/// Returns the maximum bytes alive in one slice, which no packing can go below. Sizes are rounded
/// up to the smallest alignment of all buffers, because padding follows each buffer but the
/// highest. The largest padding of the slice is therefore not counted.
std::uint64_t lower_bound(const Problem& problem);

/// Returns a number of bytes that divides all offsets and ends of some minimum packing. It divides
/// those of every packing whose buffers lie as low as the buffers below them and their own
/// alignments allow.
std::uint64_t granule(const Problem& problem);

/// A set of buffers that are never alive together with those of other sections. Each section is
/// packed separately from offset 0 up; the section that needs the most bytes determines the peak.
struct Section {
    Problem problem;
    std::vector<std::uint32_t> origins;  ///< the caller's index of each buffer
};

/// Returns the sections in the order of time. The buffers of a section are sorted by their
/// beginnings, then by the caller's order. Buffers of 0 bytes are in no section.
/// Requires: the lifetimes passed `check_lifetimes`.
std::vector<Section> compress(std::span<const TensorLifetime> lifetimes);

}  // namespace tensorpool::planner
