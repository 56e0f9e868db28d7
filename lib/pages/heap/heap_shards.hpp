#pragma once

#include <atomic>

#include "pages/heap/heap_shard.hpp"
#include "pages/heap/shards.hpp"

namespace tensorpool::pages {

/// The shards of one page heap (shards.hpp), and the marked shard, from which spans of the kind
/// `marked` come. All but the first are made at first use. Thread-safe.
class HeapShards {
public:
    explicit HeapShards(HeapCommon& common) noexcept : common_(common), shards_(common, 0U) {}
    ~HeapShards();

    /// Returns the calling thread's shard. The caller holds no shard's lock.
    HeapShard& own() noexcept;
    /// Returns the marked shard, or nullptr if memory is short. The caller holds no shard's lock.
    HeapShard* marked() noexcept;
    /// Returns the shard that a span in use belongs to.
    HeapShard& of(const Span& span) noexcept;

    /// Calls `function` with each shard.
    template <class Function>
    void for_each(Function function) noexcept {
        shards_.for_each(function);
        HeapShard* const marked = marked_.load(std::memory_order_acquire);
        if (marked != nullptr) function(*marked);
    }
    /// Those of groups of processors.
    PerShard<HeapShard>& ordinary() noexcept { return shards_; }

    /// Sets what is free in all shards.
    void report_free(Refusal& refusal) noexcept;

    /// All locks. While they are held, no shard is made.
    void lock() noexcept;
    void unlock() noexcept;

private:
    HeapShard* make(unsigned number) noexcept;
    static void discard(HeapShard& shard) noexcept;

    HeapCommon& common_;
    PerShard<HeapShard> shards_;
    // Made under the lock of the first shard; acquire and release.
    std::atomic<HeapShard*> marked_ = nullptr;
};

}  // namespace tensorpool::pages
