#pragma once

#include "kinds/kind.hpp"

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

/// Returns a guarded block if it is time for one and one can be had.
void* guard_if_due(PoolParts& pool, blocks::Cache& cache, std::size_t bytes,
                   std::size_t alignment) noexcept;

}  // namespace tensorpool::kinds
