#pragma once

#include "kinds/watcher.hpp"

namespace tensorpool::kinds {

/// Guarded blocks (watch/guards/guarded_area.hpp): some blocks of pools with Checks::sampled.
Kind::Free free_guarded;
Kind::Find find_guarded;
Kind::RecordedBytes recorded_bytes_of_guarded;

/// Guards blocks, so that this takes `PoolOptions::guard_share` of each thread's time.
class GuardWatcher final : public Watcher {
public:
    bool watches(const PoolParts& pool) const noexcept override {
        return pool.is_sampled() && pool.options.guard_share > 0;
    }
    watch::Terms terms(const PoolParts& pool) const noexcept override;
    double interval(const PoolParts& pool) const noexcept override;
    bool may_serve() const noexcept override { return true; }
    void* serve(PoolParts& pool, const Request& request) const noexcept override;
    double later_cost(const Request& request) const noexcept override;
};
inline constexpr GuardWatcher guard_watcher;

}  // namespace tensorpool::kinds
