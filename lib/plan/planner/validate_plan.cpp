#include <iterator>
#include <map>
#include <stdexcept>

#include "plan/planner/problem.hpp"

namespace tensorpool {
namespace {

[[noreturn]] void refuse(const std::string& what) {
    throw std::invalid_argument("tensorpool: plan: " + what);
}

[[noreturn]] void refuse(std::size_t index, const std::string& what) {
    refuse("buffer " + std::to_string(index) + what);
}

void check(const TensorLifetime& buffer, std::size_t index) {
    if (buffer.end <= buffer.begin) {
        refuse(index, " is alive in [" + std::to_string(buffer.begin) + ", " +
                          std::to_string(buffer.end) + "); expected an end after the beginning");
    }
    if (!std::has_single_bit(buffer.alignment)) {
        refuse(index, " is aligned to " + std::to_string(buffer.alignment) +
                          " B; expected a power of two");
    }
}

using Lifetimes = std::span<const TensorLifetime>;

std::string interval(auto begin, auto end) {
    return "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

/// A sweep through time that keeps the ranges occupied at the current moment. These do not overlap,
/// so a new range can overlap only its neighbours.
class Sweep {
public:
    Sweep(Lifetimes lifetimes, const MemoryPlan& plan) : lifetimes_(lifetimes), plan_(plan) {}

    void begin(std::size_t index) {
        const auto above = occupied_.lower_bound(plan_.offsets[index]);
        if (above != occupied_.end() && end_of(index) > above->first)
            refuse_overlap(index, above->second);
        if (above != occupied_.begin()) {
            const std::size_t below = std::prev(above)->second;
            if (end_of(below) > plan_.offsets[index]) refuse_overlap(index, below);
        }
        occupied_.emplace_hint(above, plan_.offsets[index], index);
    }
    void end(std::size_t index) { occupied_.erase(plan_.offsets[index]); }

private:
    std::uint64_t end_of(std::size_t index) const {
        return plan_.offsets[index] + lifetimes_[index].bytes;
    }
    std::string named(std::size_t index) const {
        return "buffer " + std::to_string(index) + " " +
               interval(plan_.offsets[index], end_of(index));
    }
    [[noreturn]] void refuse_overlap(std::size_t one, std::size_t other) const {
        const auto [first, second] = std::minmax(one, other);
        const TensorLifetime& a = lifetimes_[first];
        const TensorLifetime& b = lifetimes_[second];
        refuse(named(first) + " and " + named(second) + " overlap while both are alive in " +
               interval(std::max(a.begin, b.begin), std::min(a.end, b.end)));
    }

    Lifetimes lifetimes_;
    const MemoryPlan& plan_;
    std::map<std::uint64_t, std::size_t> occupied_;  ///< the buffer at each offset
};

void check_offset(const TensorLifetime& buffer, std::size_t index, const MemoryPlan& plan) {
    const std::uint64_t offset = plan.offsets[index];
    if (offset % buffer.alignment != 0) {
        refuse(index, " lies at offset " + std::to_string(offset) +
                          "; expected a multiple of its alignment, " +
                          std::to_string(buffer.alignment) + " B");
    }
    if (offset > plan.peak_bytes || buffer.bytes > plan.peak_bytes - offset) {
        refuse(index, " of " + std::to_string(buffer.bytes) + " B lies at offset " +
                          std::to_string(offset) + "; expected its end within the peak, " +
                          std::to_string(plan.peak_bytes) + " B");
    }
}

/// Returns the indices of the buffers above 0 bytes, sorted by one of their times.
std::vector<std::size_t> occupants(Lifetimes lifetimes, std::int64_t TensorLifetime::*time) {
    std::vector<std::size_t> order;
    order.reserve(lifetimes.size());
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
        if (lifetimes[i].bytes != 0) order.push_back(i);
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return lifetimes[i].*time; });
    return order;
}

}  // namespace

void planner::check_count(std::size_t buffers) {
    if (buffers <= max_buffers) return;
    refuse(std::to_string(buffers) + " buffers; expected at most " + std::to_string(max_buffers));
}

void planner::check_lifetimes(std::span<const TensorLifetime> lifetimes) {
    check_count(lifetimes.size());
    std::uint64_t room = max_bytes;
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
        const TensorLifetime& buffer = lifetimes[i];
        check(buffer, i);
        const std::uint64_t padding = buffer.alignment - 1;
        if (padding > room || buffer.bytes > room - padding) {
            refuse(i, " of " + std::to_string(buffer.bytes) + " B, aligned to " +
                          std::to_string(buffer.alignment) +
                          " B, makes all sizes and alignments together exceed 2^63 B; expected at "
                          "most 2^63 B");
        }
        room -= buffer.bytes + padding;
    }
}

void validate(Lifetimes lifetimes, const MemoryPlan& plan) {
    planner::check_lifetimes(lifetimes);
    if (plan.offsets.size() != lifetimes.size()) {
        refuse(std::to_string(plan.offsets.size()) + " offsets; expected " +
               std::to_string(lifetimes.size()) + ", one for each buffer");
    }
    for (std::size_t i = 0; i < lifetimes.size(); ++i) check_offset(lifetimes[i], i, plan);
    Sweep sweep(lifetimes, plan);
    const std::vector<std::size_t> ends = occupants(lifetimes, &TensorLifetime::end);
    auto next = ends.begin();
    for (const std::size_t index : occupants(lifetimes, &TensorLifetime::begin)) {
        for (; lifetimes[*next].end <= lifetimes[index].begin; ++next) sweep.end(*next);
        sweep.begin(index);
    }
}

}  // namespace tensorpool
