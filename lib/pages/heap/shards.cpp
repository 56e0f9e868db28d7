#include "pages/heap/shards.hpp"

#include <algorithm>
#include <thread>

#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

// The processors of a group have adjacent numbers, so they usually share a cache.
unsigned shard_of_processor() noexcept {
    return platform::current_processor() / processors_per_shard %
           sharding.count.load(std::memory_order_relaxed);
}

}  // namespace

constinit Sharding sharding{.count = 0, .current = shard_of_processor};

unsigned shards_for(unsigned processors) noexcept {
    const unsigned groups = (processors + processors_per_shard - 1) / processors_per_shard;
    return std::clamp(groups, 1U, max_shards);
}

// Threads that get here at the same time find the same number.
unsigned determine_shard() noexcept {
    sharding.count.store(shards_for(std::thread::hardware_concurrency()),
                         std::memory_order_relaxed);
    return current_shard();
}

}  // namespace tensorpool::pages
