#pragma once

/// @file
/// The fast path: two small arrays of free blocks for each bucket of each thread. Layer `blocks`.
/// After Bonwick and Adams, "Magazines and Vmem", USENIX 2001.

#include <array>
#include <atomic>
#include <cstddef>

#include <tensorpool/detail/buckets.hpp>
#include <tensorpool/detail/counters.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool::detail {
inline namespace abi_1 {

/// The loaded magazine of one bucket, as the fast path sees it: free blocks lie in
/// [bottom, top), and there is room up to limit. bottom <= top <= limit. As far apart as a bucket's
/// counters, so that one shift finds both.
struct alignas(64) LoadedMagazine {
    void** top = nullptr;
    void** bottom = nullptr;
    void** limit = nullptr;
};

/// Lets the compiler drop a test.
[[noreturn]] inline void unreachable() noexcept {
#if defined(_MSC_VER)
    __assume(false);
#else
    __builtin_unreachable();
#endif
}

/// One thread's free blocks of one pool. Only that thread touches it, save when the pool dies.
struct ThreadCache {
    ThreadCounters* counters = nullptr;
    LoadedMagazine loaded[bucket_count] = {};

    /// A block of this bucket, or nullptr when the loaded magazine is empty.
    void* pop(unsigned bucket, std::size_t requested_bytes) noexcept {
        LoadedMagazine& magazine = loaded[bucket];
        void** const top = magazine.top;
        if (top == magazine.bottom) [[unlikely]]
            return nullptr;
        magazine.top = top - 1;
        BucketCounters& counted = counters->buckets[bucket];
        add(counted.allocations, 1);
        add(counted.requested_bytes, requested_bytes);
        void* const block = top[-1];
        if (block == nullptr) unreachable();
        return block;
    }

    /// False, and nothing done, when the loaded magazine is full.
    bool push(unsigned bucket, void* block) noexcept {
        LoadedMagazine& magazine = loaded[bucket];
        void** const top = magazine.top;
        if (top == magazine.limit) [[unlikely]]
            return false;
        *top = block;
        magazine.top = top + 1;
        add_release(counters->buckets[bucket].deallocations, 1);
        return true;
    }
};

/// Pools with a number below this have thread caches; the last entry stands for all others and
/// for pools with checks, and always holds the empty cache.
inline constexpr unsigned cached_pool_count = 255;

/// A thread's caches by the pool's number. An entry is never null: where a thread has no cache, it
/// is the empty one, which always looks empty and full, so that every call takes the slow path.
/// Relaxed loads are enough: a thread sets its own entries, and a pool that dies clears them when
/// no other call on it is under way.
struct ThreadTable {
    std::array<std::atomic<ThreadCache*>, cached_pool_count + 1> caches;
};

/// This thread's table; the table of empty caches until its first slow path.
extern TENSORPOOL_API constinit thread_local ThreadTable* thread_table TENSORPOOL_INITIAL_EXEC;

inline ThreadCache& thread_cache(unsigned pool_number) noexcept {
    return *thread_table->caches[pool_number].load(std::memory_order_relaxed);
}

}  // namespace abi_1
}  // namespace tensorpool::detail
