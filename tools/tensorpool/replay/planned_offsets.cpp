#include "replay/planned_offsets.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "replay/plan.hpp"

namespace tensorpool::command::replay {
namespace {

using trace::Life;

constexpr std::uint64_t pool_alignment = std::uint64_t{1} << Step::plain_alignment_log2;

std::uint64_t alignment_of(const trace::Recording& recording, const Life& life) {
    if (life.begin == Life::none) return pool_alignment;
    return std::max(pool_alignment, std::uint64_t{1} << recording.calls[life.begin].alignment_log2);
}

}  // namespace

MemoryPlan planned_offsets(const trace::Recording& recording, const LifetimeOrder& order) {
    const std::vector<Life>& lives = order.lives();
    std::vector<TensorLifetime> lifetimes(lives.size());
    for (std::size_t i = 0; i < lives.size(); ++i) {
        // An allocation of 0 bytes still returns a block.
        lifetimes[i].bytes = std::max<std::uint64_t>(lives[i].bytes, 1);
        lifetimes[i].alignment = alignment_of(recording, lives[i]);
    }
    std::int64_t now = 0;
    order.walk([&](std::size_t life) { lifetimes[life].begin = now++; },
               [&](std::size_t life) { lifetimes[life].end = now; });
    for (TensorLifetime& life : lifetimes) {
        if (life.end == 0) life.end = now;  // never freed
    }
    return plan_memory(lifetimes, {.budget = std::chrono::seconds(1)});
}

}  // namespace tensorpool::command::replay
