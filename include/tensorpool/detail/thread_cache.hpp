#pragma once

/// @file
/// The fast path: two small arrays of free blocks for each bucket of each thread. Layer `blocks`.
/// After Bonwick and Adams, "Magazines and Vmem", USENIX 2001.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tensorpool/detail/buckets.hpp>
#include <tensorpool/detail/counters.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool::detail {
inline namespace abi_2 {

/// The loaded magazine of one bucket, as the fast path sees it: free blocks lie in
/// [bottom, top), and there is room up to limit. As far apart as a bucket's counters, so that one
/// shift finds both.
///
/// Its thread alone writes `top`. Another thread may take what lies in it, by the protocol of
/// Frigo, Leiserson and Randall ("The Implementation of the Cilk-5 Multithreaded Language", PLDI
/// 1998): it raises `bottom` beyond all, makes every thread of the process pass a fence, and what
/// then lies below `top` is its own. So `pop` takes a block by lowering `top`, and has it only if
/// `bottom`, read after that, is not above. Each `push` may fill a last place after the limit fell.
struct alignas(64) LoadedMagazine {
    void** top = nullptr;
    std::atomic<void**> bottom = nullptr;
    std::atomic<void**> limit = nullptr;
};

/// Keeps gcc from computing the address anew for each field.
inline LoadedMagazine& in_register(LoadedMagazine& magazine) noexcept {
    LoadedMagazine* address = &magazine;
#if defined(__GNUC__) && defined(__x86_64__)
    asm("" : "+r"(address));
#endif
    return *address;
}

/// Whether a place is at or below a bound that another thread may move meanwhile. Relaxed.
inline bool is_within(void** place, const std::atomic<void**>& bound) noexcept {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    // The line below in one instruction; gcc makes two, and computes the address for each.
    bool within;
    asm volatile("cmpq %1, %2" : "=@ccbe"(within) : "m"(bound), "r"(place));
    return within;
#else
    return place <= bound.load(std::memory_order_relaxed);
#endif
}

/// Lets the compiler drop a test.
[[noreturn]] inline void unreachable() noexcept {
#if defined(_MSC_VER)
    __assume(false);
#else
    __builtin_unreachable();
#endif
}

/// One thread's free blocks of one pool. Only that thread calls these.
struct ThreadCache {
    // First, so that a bucket's magazine lies where its counters do beside theirs.
    LoadedMagazine loaded[bucket_count] = {};
    ThreadCounters* counters = nullptr;

    /// A block of this bucket, or nullptr when the loaded magazine is empty or taken.
    void* pop(unsigned bucket, std::size_t requested_bytes) noexcept {
        LoadedMagazine& magazine = in_register(loaded[bucket]);
        void** const top = magazine.top;
        if (is_within(top, magazine.bottom)) [[unlikely]]
            return nullptr;
        // Release, for who takes the rest. The fence is the compiler's: the other thread makes the
        // processor pass one.
        std::atomic_ref(magazine.top).store(top - 1, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (is_within(top, magazine.bottom)) [[unlikely]] {
            std::atomic_ref(magazine.top).store(top, std::memory_order_release);
            return nullptr;
        }
        BucketCounters& counted = counters->buckets[bucket];
        add(counted.allocations, 1);
        add(counted.requested_bytes, requested_bytes);
        void* const block = top[-1];
        if (block == nullptr) unreachable();
        return block;
    }

    /// False, and nothing done, when the loaded magazine is full or taken.
    bool push(unsigned bucket, void* block) noexcept {
        LoadedMagazine& magazine = in_register(loaded[bucket]);
        void** const top = magazine.top;
        if (!is_within(top + 1, magazine.limit)) [[unlikely]]
            return false;
        *top = block;
        std::atomic_ref(magazine.top).store(top + 1, std::memory_order_release);
        add_release(counters->buckets[bucket].deallocations, 1);
        return true;
    }
};

/// A thread's caches for pools with numbers in succession. An entry is never null: where a thread
/// has no cache, it is the empty one, which always looks empty and full, so that every call takes
/// the slow path. Relaxed loads are enough: a thread sets its own entries, and a pool that dies
/// clears them when no other call on it is under way.
struct ThreadLeaf {
    static constexpr unsigned size = 64;
    std::array<std::atomic<ThreadCache*>, size> caches;
};

/// A thread's caches by the pool's number: leaves, each made when the thread uses one of its pools.
/// Until then the shared empty leaf stands in its place.
struct ThreadTable {
    static constexpr unsigned leaf_count = 65;
    /// The first leaf, so that the global pool's entry is one load away.
    ThreadLeaf first;
    /// `first` and the others. The last one is always the empty leaf: it stands for pools beyond
    /// all leaves.
    std::array<std::atomic<ThreadLeaf*>, leaf_count + 1> leaves;
};

/// Pools with a number below this have thread caches. As a number itself it has none.
inline constexpr unsigned cached_pool_count = ThreadTable::leaf_count * ThreadLeaf::size;

/// Where a pool's entry is in every thread's table: two offsets in bytes, so that nothing has to be
/// computed from the number.
struct TablePlace {
    /// `pool_number` is at most `cached_pool_count`.
    explicit constexpr TablePlace(unsigned pool_number) noexcept
        : leaf(static_cast<std::uint16_t>(offsetof(ThreadTable, leaves) +
                                          pool_number / ThreadLeaf::size * sizeof(void*))),
          entry(static_cast<std::uint16_t>(pool_number % ThreadLeaf::size * sizeof(void*))) {}

    std::uint16_t leaf;
    std::uint16_t entry;
};

/// This thread's table; the table of empty caches until its first slow path.
extern TENSORPOOL_API constinit thread_local ThreadTable* thread_table TENSORPOOL_INITIAL_EXEC;

inline ThreadCache& thread_cache(TablePlace place) noexcept {
    using Leaf = std::atomic<ThreadLeaf*>;
    using Entry = std::atomic<ThreadCache*>;
    static_assert(sizeof(Leaf) == sizeof(void*) && sizeof(Entry) == sizeof(void*));
    std::byte* const table = reinterpret_cast<std::byte*>(thread_table);
    ThreadLeaf* const leaf =
        reinterpret_cast<Leaf*>(table + place.leaf)->load(std::memory_order_relaxed);
    return *reinterpret_cast<Entry*>(reinterpret_cast<std::byte*>(leaf) + place.entry)
                ->load(std::memory_order_relaxed);
}

/// The same for the pool whose number is 0.
inline ThreadCache& first_thread_cache() noexcept {
    return *thread_table->first.caches[0].load(std::memory_order_relaxed);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
