#pragma once

#include "kinds/watcher.hpp"

namespace tensorpool::kinds {

/// Guarded blocks (watch/guards/guarded_area.hpp): some blocks of pools with Checks::sampled.
class GuardedKind final : public Kind {
public:
    bool free(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
              Changes& changes) const noexcept override;
    Found find(PoolParts& pool, const void* p, PageEntry entry) const noexcept override;
    void* resize(PoolParts&, void*, const Found&, std::size_t) const noexcept override {
        return nullptr;
    }
    std::size_t recorded_bytes(const void* p, PageEntry entry) const noexcept override;
};
inline constexpr GuardedKind guarded_kind;

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
