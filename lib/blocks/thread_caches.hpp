#pragma once

#include "blocks/bucket_set.hpp"

namespace tensorpool::blocks {

/// A thread's caches for the pools of one leaf.
using OwnCaches = std::array<Cache*, detail::ThreadLeaf::size>;

// Placeholders for a thread without a cache or leaf. Never written.
extern constinit detail::ThreadCache empty_cache;
extern constinit detail::ThreadLeaf empty_leaf;
extern constinit OwnCaches no_own_caches;

template <std::size_t... Index>
constexpr detail::ThreadLeaf leaf_of_empty_caches(std::index_sequence<Index...>) noexcept {
    return {{(static_cast<void>(Index), &empty_cache)...}};
}
constexpr detail::ThreadLeaf leaf_of_empty_caches() noexcept {
    return leaf_of_empty_caches(std::make_index_sequence<detail::ThreadLeaf::size>());
}

/// The leaves of a table without caches. (clang 14 evaluates a function template here, but not a
/// constructor template.)
template <std::size_t... Index>
constexpr std::array<std::atomic<detail::ThreadLeaf*>, sizeof...(Index)> empty_leaves(
    std::index_sequence<Index...>) noexcept {
    return {{(static_cast<void>(Index), &empty_leaf)...}};
}

/// A leaf of a thread's table, or a free leaf for reuse.
struct OwnLeaf : OwnCaches {
    OwnLeaf() noexcept : OwnCaches{} {}

    detail::ThreadLeaf view = leaf_of_empty_caches();
    detail::ThreadLeaf view_in_scope = leaf_of_empty_caches();
    OwnLeaf* next_free = nullptr;
};

/// The position of a pool's cache in every thread's table.
struct OwnPlace {
    /// `number` is the pool's, or `cached_pool_count` for all pools that have no caches.
    explicit constexpr OwnPlace(unsigned number) noexcept
        : leaf(number / detail::ThreadLeaf::size), index(number % detail::ThreadLeaf::size) {}

    unsigned leaf;
    unsigned index;
};

/// Holds the lock of a thread's list of caches.
class ListLock {
public:
    explicit ListLock(std::atomic_flag& flag) noexcept : flag_(flag) {
        while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    ~ListLock() { flag_.clear(std::memory_order_release); }
    ListLock(const ListLock&) = delete;
    ListLock& operator=(const ListLock&) = delete;

private:
    std::atomic_flag& flag_;
};

/// A thread's caches. Inline paths see one of two tables: the base class outside of all scopes of
/// budgets, and `in_scope` inside one (budget.hpp). There, a pool whose blocks the scope charges
/// has its cache of the marked set, or the empty cache until the thread uses it. For pools with
/// checks, and for all pools while caches are hidden, both contain the empty cache.
///
/// Changed under the registry's lock, except for the list of caches that expose blocks. The thread
/// itself reads without the lock, and only the thread adds or removes leaves.
struct ThreadCaches : detail::ThreadTable {
    static constexpr unsigned leaf_size = detail::ThreadLeaf::size;

    constexpr ThreadCaches() noexcept
        : ThreadTable{leaf_of_empty_caches(),
                      empty_leaves(std::make_index_sequence<leaf_count + 1>())},
          in_scope{leaf_of_empty_caches(),
                   empty_leaves(std::make_index_sequence<leaf_count + 1>())} {
        own_.fill(&no_own_caches);
    }

    /// What inline paths of the thread see inside a scope.
    detail::ThreadTable in_scope;

    OwnCaches& own_leaf(unsigned number) noexcept { return *own_[number / leaf_size]; }
    Cache*& own(unsigned number) noexcept { return own_leaf(number)[number % leaf_size]; }
    Cache* own(OwnPlace place) const noexcept { return (*own_[place.leaf])[place.index]; }
    static void set_view(detail::ThreadTable& table, unsigned number,
                         detail::ThreadCache& cache) noexcept {
        detail::ThreadLeaf& leaf =
            *table.leaves[number / leaf_size].load(std::memory_order_relaxed);
        leaf.caches[number % leaf_size].store(&cache, std::memory_order_relaxed);
    }
    /// Makes inline paths find no cache for this number. REQUIRES: the thread has its leaf.
    void clear_views(unsigned number) noexcept {
        set_view(*this, number, empty_cache);
        set_view(in_scope, number, empty_cache);
    }

    bool has_leaf_of(unsigned number) const noexcept {
        return own_[number / leaf_size] != &no_own_caches;
    }
    /// Calls `function` with all pool numbers of the leaves that the thread has.
    template <class Function>
    void for_each_number(Function function) const noexcept {
        for (unsigned leaf = 0; leaf < detail::cached_pool_count; leaf += leaf_size) {
            if (!has_leaf_of(leaf)) continue;
            for (unsigned index = 0; index < leaf_size; ++index) function(leaf + index);
        }
    }
    /// Called once. The table of threads without caches, `no_caches`, has no leaf.
    void add_first_leaf() noexcept { set_leaf(0, first, in_scope.first, first_own_); }
    void add_leaf_of(unsigned number, OwnLeaf& leaf) noexcept {
        set_leaf(number / leaf_size, leaf.view, leaf.view_in_scope, leaf);
    }
    /// Removes and returns a leaf that holds no cache any more. Returns nullptr if the thread does
    /// not have the leaf, or for the first leaf, which stays.
    OwnLeaf* remove_leaf(unsigned index) noexcept {
        if (index == 0 || own_[index] == &no_own_caches) return nullptr;
        auto* const leaf = static_cast<OwnLeaf*>(own_[index]);
        set_leaf(index, empty_leaf, empty_leaf, no_own_caches);
        return leaf;
    }

    // The thread's caches that expose blocks to its scope (marked_set.hpp). A pool that ends
    // removes its cache from the list of another thread.
    void list_exposing(Cache& cache) noexcept {
        const ListLock lock(exposing_lock_);
        cache.next_exposing = exposing_.load(std::memory_order_relaxed);
        cache.is_listed = true;
        exposing_.store(&cache, std::memory_order_relaxed);
    }
    void unlist_exposing(Cache& cache) noexcept {
        const ListLock lock(exposing_lock_);
        if (!cache.is_listed) return;
        cache.is_listed = false;
        Cache* const head = exposing_.load(std::memory_order_relaxed);
        if (head == &cache) return exposing_.store(cache.next_exposing, std::memory_order_relaxed);
        Cache* before = head;
        while (before->next_exposing != &cache) before = before->next_exposing;
        before->next_exposing = cache.next_exposing;
    }
    /// Conceals the blocks of all listed caches and empties the list. Returns false if one of them
    /// is claimed by a thread that takes back blocks. Called by the thread itself.
    bool conceal_all() noexcept {
        if (exposing_.load(std::memory_order_relaxed) == nullptr) return true;
        const ListLock lock(exposing_lock_);
        while (Cache* const cache = exposing_.load(std::memory_order_relaxed)) {
            if (!cache->try_conceal()) return false;
            cache->is_listed = false;
            exposing_.store(cache->next_exposing, std::memory_order_relaxed);
        }
        return true;
    }
    /// Forgets the list. For a thread that does not exist in the child of a fork.
    void forget_exposing() noexcept {
        exposing_.store(nullptr, std::memory_order_relaxed);
        exposing_lock_.clear();
    }

    /// How often the thread's requests are looked at. Used by the thread only.
    watch::Pace pace;

    // Used by ThreadTables.
    ThreadCaches* next = nullptr;
    ThreadCaches* previous = nullptr;  // in the list of running threads

private:
    void set_leaf(unsigned index, detail::ThreadLeaf& view, detail::ThreadLeaf& view_in_scope,
                  OwnCaches& own) noexcept {
        own_[index] = &own;
        leaves[index].store(&view, std::memory_order_relaxed);
        in_scope.leaves[index].store(&view_in_scope, std::memory_order_relaxed);
    }

    OwnCaches first_own_ = {};
    std::array<OwnCaches*, leaf_count + 1> own_ = {};  // the last: for pools without caches
    // Written under the lock, which is held for a few stores, or while blocks are concealed. Almost
    // always only the thread itself takes it.
    std::atomic<Cache*> exposing_ = nullptr;
    std::atomic_flag exposing_lock_;
};

/// The table of threads without caches. Never written.
extern constinit ThreadCaches no_caches;

/// The caches of this thread, of which `detail::thread_table` is one of the two views.
extern constinit thread_local ThreadCaches* thread_caches TENSORPOOL_INITIAL_EXEC;

inline ThreadCaches& own_caches() noexcept {
    return *thread_caches;
}

/// Returns the calling thread's cache of this set, or nullptr if it has none.
inline Cache* own_cache(const BucketSet& set) noexcept {
    Cache* const cache = set.may_cache() ? own_caches().own(set.number()) : nullptr;
    return set.is_marked() && cache != nullptr ? cache->marked : cache;
}

/// Returns the calling thread's cache at this position of its table, or nullptr if it has none.
inline Cache* own_cache(OwnPlace place) noexcept {
    return own_caches().own(place);
}

}  // namespace tensorpool::blocks
