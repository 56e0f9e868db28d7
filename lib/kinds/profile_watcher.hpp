#pragma once

#include "kinds/watcher.hpp"

namespace tensorpool::kinds {

/// The heap profile: samples some allocations (watch/profile/profiled_blocks.hpp). A tool that
/// watches memory sees every call, so then no pool is sampled.
class ProfileWatcher final : public Watcher {
public:
    bool watches(const PoolParts& pool) const noexcept override;
    watch::Terms terms(const PoolParts& pool) const noexcept override;
    double interval(const PoolParts& pool) const noexcept override;
    base::BlockMark* mark(const Request& request, const void* p, double mean,
                          base::BlockMark* covered) const noexcept override;
    void lose() const noexcept override;
    double later_cost(const Request& request) const noexcept override;
};
inline constexpr ProfileWatcher profile_watcher;

}  // namespace tensorpool::kinds
