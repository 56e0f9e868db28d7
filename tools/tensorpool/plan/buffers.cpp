#include "plan/buffers.hpp"

#include <algorithm>
#include <tuple>

namespace tensorpool::command::planning {
namespace {

/// Ends sort before beginnings of the same time, because intervals are half-open.
struct Change {
    std::int64_t time;
    bool begins;
    std::uint64_t bytes;
    friend bool operator<(const Change& a, const Change& b) {
        return std::tie(a.time, a.begins) < std::tie(b.time, b.begins);
    }
};

}  // namespace

std::uint64_t lower_bound_of(const std::vector<TensorLifetime>& lifetimes) {
    std::vector<Change> changes;
    changes.reserve(2 * lifetimes.size());
    for (const TensorLifetime& lifetime : lifetimes) {
        changes.push_back({lifetime.begin, true, lifetime.bytes});
        changes.push_back({lifetime.end, false, lifetime.bytes});
    }
    std::sort(changes.begin(), changes.end());
    std::uint64_t alive = 0;
    std::uint64_t max = 0;
    for (const Change& change : changes) {
        alive = change.begins ? alive + change.bytes : alive - change.bytes;
        max = std::max(max, alive);
    }
    return max;
}

std::uint64_t peak_of(const std::vector<TensorLifetime>& lifetimes,
                      const std::vector<std::uint64_t>& offsets) {
    std::uint64_t peak = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        peak = std::max(peak, offsets[i] + lifetimes[i].bytes);
    }
    return peak;
}

}  // namespace tensorpool::command::planning
