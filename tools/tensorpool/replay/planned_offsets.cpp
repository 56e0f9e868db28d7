#include "replay/planned_offsets.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "replay/plan.hpp"

namespace tensorpool::command::replay {
namespace {

using trace::Lifetime;

constexpr std::uint64_t pool_alignment = std::uint64_t{1} << Step::plain_alignment_log2;

std::uint64_t alignment_of(const trace::Recording& recording, const Lifetime& lifetime) {
    if (lifetime.begin == Lifetime::none) return pool_alignment;
    return std::max(pool_alignment,
                    std::uint64_t{1} << recording.calls[lifetime.begin].alignment_log2);
}

}  // namespace

MemoryPlan planned_offsets(const trace::Recording& recording, const LifetimeOrder& order) {
    const std::vector<Lifetime>& recorded = order.lifetimes();
    std::vector<TensorLifetime> lifetimes(recorded.size());
    for (std::size_t i = 0; i < recorded.size(); ++i) {
        // An allocation of 0 bytes still returns a block.
        lifetimes[i].bytes = std::max<std::uint64_t>(recorded[i].bytes, 1);
        lifetimes[i].alignment = alignment_of(recording, recorded[i]);
    }
    std::int64_t now = 0;
    order.walk([&](std::size_t lifetime) { lifetimes[lifetime].begin = now++; },
               [&](std::size_t lifetime) { lifetimes[lifetime].end = now; });
    for (TensorLifetime& lifetime : lifetimes) {
        if (lifetime.end == 0) lifetime.end = now;  // never freed
    }
    return plan_memory(lifetimes, {.budget = std::chrono::seconds(1)});
}

}  // namespace tensorpool::command::replay
