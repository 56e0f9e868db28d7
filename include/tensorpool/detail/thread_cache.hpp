#pragma once

/// @file
/// The fast path: two small arrays of free blocks, magazines, for each bucket of each thread. Layer
/// `blocks`. After Bonwick and Adams, "Magazines and Vmem", USENIX 2001.

#include <array>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool::detail {
inline namespace abi_2 {

/// The loaded magazine of one bucket, as the fast path sees it: free blocks lie in [bottom, top),
/// and there is room up to `limit`. It has the size of a bucket's counters, so that one shift finds
/// both.
///
/// Only the magazine's thread writes `top`. Another thread may take the blocks by the protocol of
/// Frigo, Leiserson and Randall ("The Implementation of the Cilk-5 Multithreaded Language", PLDI
/// 1998). It raises `bottom` above every position and makes every thread of the process pass a
/// fence; the blocks then below `top` are its own. So `pop` takes a block by lowering `top`, and
/// owns it only if `bottom`, read afterwards, is not above. After `limit` was lowered, a `push`
/// under way may still fill one last position.
struct alignas(64) LoadedMagazine {
    void** top = nullptr;
    std::atomic<void**> bottom = nullptr;
    std::atomic<void**> limit = nullptr;
};

/// Keeps gcc from computing the address again for each field.
inline LoadedMagazine& in_register(LoadedMagazine& magazine) noexcept {
    LoadedMagazine* address = &magazine;
#if defined(__GNUC__) && defined(__x86_64__)
    asm("" : "+r"(address));
#endif
    return *address;
}

/// Returns whether a position is at or below a bound that another thread may move at the same time.
/// Relaxed.
inline bool is_within(void** position, const std::atomic<void**>& bound) noexcept {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    // The line below as one instruction; gcc makes two, and computes the address for each.
    bool within;
    asm volatile("cmpq %1, %2" : "=@ccbe"(within) : "m"(bound), "r"(position));
    return within;
#else
    return position <= bound.load(std::memory_order_relaxed);
#endif
}

/// Returns whether an address is below a bound that another thread may move at the same time.
/// Relaxed.
inline bool is_below(std::uintptr_t address, const std::atomic<std::uintptr_t>& bound) noexcept {
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    // The line below as one instruction; gcc makes two.
    bool below;
    asm volatile("cmpq %1, %2" : "=@ccb"(below) : "m"(bound), "r"(address));
    return below;
#else
    return address < bound.load(std::memory_order_relaxed);
#endif
}

/// Declares that control does not reach the call, so that the compiler can drop a test.
[[noreturn]] inline void unreachable() noexcept {
    __builtin_unreachable();
}

/// The free blocks of one thread for one pool. Only that thread calls these functions.
struct ThreadCache {
    // The first member, so that the offset of a bucket's magazine is that of its counters.
    LoadedMagazine loaded[bucket_count] = {};
    ThreadCounters* counters = nullptr;
    /// The requested bytes until an allocation is sampled. A request for more takes the slow path,
    /// which subtracts its bytes, samples it and sets the next distance. Without sampling it is
    /// never used up. The empty cache has -1, so its `pop` fails before it writes anything.
    std::int64_t bytes_to_sample = -1;
    /// Blocks below this address are guarded or sampled, and never in a magazine. So is null. While
    /// blocks of the pool are charged to a budget, all addresses are below it. Another thread may
    /// raise it before it passes a charged block on.
    std::atomic<std::uintptr_t> first_unguarded = 1;

    static constexpr std::int64_t never_sampled = INT64_MAX;

    /// Takes a block of this bucket from the loaded magazine and counts `requested_bytes`. Returns
    /// nullptr if the magazine is empty or taken, and if the allocation is to be sampled.
    void* pop(unsigned bucket, std::size_t requested_bytes) noexcept {
        if (bytes_to_sample < static_cast<std::int64_t>(requested_bytes)) [[unlikely]]
            return nullptr;
        LoadedMagazine& magazine = in_register(loaded[bucket]);
        void** const top = magazine.top;
        // Computed as a number, because an empty magazine has no position below its top. The
        // release store is for a thread that takes the rest of the blocks. This fence only stops
        // the compiler: the other thread makes the processor pass one.
        void** const lowered =
            reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(top) - sizeof(void*));
        std::atomic_ref(magazine.top).store(lowered, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (is_within(top, magazine.bottom)) [[unlikely]] {
            std::atomic_ref(magazine.top).store(top, std::memory_order_release);
            return nullptr;
        }
        bytes_to_sample -= static_cast<std::int64_t>(requested_bytes);
        BucketCounters& counted = counters->buckets[bucket];
        add(counted.allocations, 1);
        add(counted.requested_bytes, requested_bytes);
        void* const block = top[-1];
        if (block == nullptr) unreachable();
        return block;
    }

    /// Returns whether `p` lies below it. REQUIRES: `p` is null or a block of the pool.
    bool is_guarded_or_null(const void* p) const noexcept {
        return is_below(reinterpret_cast<std::uintptr_t>(p), first_unguarded);
    }

    /// Puts a freed block on the loaded magazine. Returns false, and does nothing, if the magazine
    /// is full or taken. REQUIRES: the block is neither guarded nor null.
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

/// The caches of a thread for pools with consecutive numbers.
///
/// An entry is never null. If a thread has no cache, the entry is the empty cache, which always
/// looks empty and full, so that every call takes the slow path. Relaxed loads are enough: a thread
/// sets its own entries, and a pool that is destroyed clears them while no other call on it is
/// under way.
struct ThreadLeaf {
    static constexpr unsigned size = 64;
    std::array<std::atomic<ThreadCache*>, size> caches;
};

/// The caches of a thread by the pool's number, in leaves. A leaf is made when the thread first
/// uses one of its pools; before, the shared empty leaf is in its position.
struct ThreadTable {
    static constexpr unsigned leaf_count = 65;
    /// The first leaf, so that the global pool's entry is one load away.
    ThreadLeaf first;
    /// `first` and the other leaves. The last one is always the empty leaf, for pools beyond all
    /// leaves.
    std::array<std::atomic<ThreadLeaf*>, leaf_count + 1> leaves;
};

/// Pools with a number below this have thread caches. The value itself stands for a pool without.
inline constexpr unsigned cached_pool_count = ThreadTable::leaf_count * ThreadLeaf::size;

/// The position of a pool's entry in every thread's table, as two offsets in bytes, so that the
/// fast path computes nothing from the number.
struct TablePlace {
    /// Computes the position for `pool_number`, which is at most `cached_pool_count`.
    explicit constexpr TablePlace(unsigned pool_number) noexcept
        : leaf(static_cast<std::uint16_t>(offsetof(ThreadTable, leaves) +
                                          pool_number / ThreadLeaf::size * sizeof(void*))),
          entry(static_cast<std::uint16_t>(pool_number % ThreadLeaf::size * sizeof(void*))) {}

    std::uint16_t leaf;
    std::uint16_t entry;
};

/// This thread's table; the table of empty caches until its first slow path.
extern TENSORPOOL_API constinit thread_local ThreadTable* thread_table TENSORPOOL_INITIAL_EXEC;

/// Returns this thread's cache for the pool with this position.
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

/// Returns this thread's cache for the pool with number 0.
inline ThreadCache& first_thread_cache() noexcept {
    return *thread_table->first.caches[0].load(std::memory_order_relaxed);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
