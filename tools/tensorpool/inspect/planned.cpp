#include "inspect/planned.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace tensorpool::command::inspect {
namespace {

constexpr std::size_t max_searched = 20'000;
constexpr std::chrono::milliseconds search_budget{200};
constexpr std::uint64_t pool_alignment = 64;
/// Larger alignments occur only in damaged files.
constexpr unsigned max_alignment_log2 = 62;

std::uint64_t alignment_of(const History& history, const Lifetime& lifetime) {
    if (lifetime.begin == Lifetime::none) return pool_alignment;
    const unsigned requested = history.recording().calls[lifetime.begin].alignment_log2;
    return std::max(pool_alignment, std::uint64_t{1} << std::min(requested, max_alignment_log2));
}

/// Returns the lifetimes in steps of `History::walk`, so that the blocks that a call ends are freed
/// before it allocates others.
std::vector<TensorLifetime> lifetimes_in(const History& history) {
    const std::vector<Lifetime>& recorded = history.lifetimes();
    std::vector<TensorLifetime> lifetimes(recorded.size());
    std::int64_t now = 0;
    history.walk([&](std::size_t i) { lifetimes[i].begin = now++; },
                 [&](std::size_t i) { lifetimes[i].end = now; });
    for (std::size_t i = 0; i < recorded.size(); ++i) {
        TensorLifetime& lifetime = lifetimes[i];
        lifetime.bytes = recorded[i].bytes;
        lifetime.alignment = alignment_of(history, recorded[i]);
        if (recorded[i].end == Lifetime::none) lifetime.end = now;
        // A block that was freed by the call that allocated it was never handed out.
        if (lifetime.end <= lifetime.begin) lifetime = {lifetime.begin, lifetime.begin + 1, 0, 1};
    }
    return lifetimes;
}

}  // namespace

Planned plan_of(const History& history) {
    const std::vector<TensorLifetime> lifetimes = lifetimes_in(history);
    const bool searched = lifetimes.size() <= max_searched;
    const std::chrono::nanoseconds budget = searched ? search_budget : std::chrono::nanoseconds(0);
    try {
        const MemoryPlan plan = plan_memory(lifetimes, {.budget = budget});
        return {true, searched, plan.peak_bytes, plan.lower_bound_bytes, plan.optimal, plan.method};
    } catch (const std::invalid_argument&) {
        return {};
    }
}

}  // namespace tensorpool::command::inspect
