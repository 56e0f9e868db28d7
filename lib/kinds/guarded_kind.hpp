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
    bool watches(const PoolParts& pool) const noexcept override;
    Wish look(Look& look) const noexcept override;
    base::BlockMark* begin(Look&, const void*, double, base::BlockMark*) const noexcept override {
        return nullptr;
    }
};
inline constexpr GuardWatcher guard_watcher;

}  // namespace tensorpool::kinds
