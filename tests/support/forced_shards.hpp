#pragma once

#include "pages/heap/shards.hpp"

namespace tensorpool::testing {

/// Divides threads among `count` shards while it exists. By default, each call of each thread gets
/// another shard, as if the thread moved to another processor in between. No other thread may use
/// a pool while it is made or destroyed.
class ForcedShards {
public:
    explicit ForcedShards(unsigned count) : before_(pages::sharding.count.load()) {
        pages::sharding.count = count;
        pages::sharding.current = current;
    }
    ~ForcedShards() {
        pages::sharding.count = before_;
        pages::sharding.current = processor_;
    }
    ForcedShards(const ForcedShards&) = delete;
    ForcedShards& operator=(const ForcedShards&) = delete;

    static constexpr unsigned changing = ~0U;
    /// From now on, all calls of this thread get this shard, or again changing ones.
    static void keep_to(unsigned shard) { kept_ = shard; }

private:
    static unsigned current() noexcept {
        if (kept_ != changing) return kept_;
        last_ = last_ * 1'664'525 + 1'013'904'223;  // Numerical Recipes' generator
        return (last_ >> 16) % pages::sharding.count;
    }

    static inline thread_local unsigned kept_ = changing;
    static inline thread_local unsigned last_ = 0;
    const unsigned before_;
    unsigned (*const processor_)() noexcept = pages::sharding.current;
};

}  // namespace tensorpool::testing
