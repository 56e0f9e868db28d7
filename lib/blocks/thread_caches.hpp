#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

#include <tensorpool/detail/thread_cache.hpp>

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
struct OwnLeaf {
    detail::ThreadLeaf view = leaf_of_empty_caches();
    OwnCaches own = {};
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

/// A thread's caches. The base class, `ThreadTable`, is what inline paths see: for pools with
/// checks, and for all pools while caches are hidden, it contains the empty cache instead of the
/// thread's own. Changed under the registry's lock. The thread itself reads without the lock, and
/// only the thread adds or removes leaves.
struct ThreadCaches : detail::ThreadTable {
    static constexpr unsigned leaf_size = detail::ThreadLeaf::size;

    constexpr ThreadCaches() noexcept
        : ThreadTable{leaf_of_empty_caches(),
                      empty_leaves(std::make_index_sequence<leaf_count + 1>())} {
        own_.fill(&no_own_caches);
    }

    OwnCaches& own_leaf(unsigned number) noexcept { return *own_[number / leaf_size]; }
    Cache*& own(unsigned number) noexcept { return own_leaf(number)[number % leaf_size]; }
    Cache* own(OwnPlace place) const noexcept { return (*own_[place.leaf])[place.index]; }
    void set_view(unsigned number, detail::ThreadCache& cache) noexcept {
        detail::ThreadLeaf& leaf = *leaves[number / leaf_size].load(std::memory_order_relaxed);
        leaf.caches[number % leaf_size].store(&cache, std::memory_order_relaxed);
    }

    bool has_leaf_of(unsigned number) const noexcept {
        return own_[number / leaf_size] != &no_own_caches;
    }
    /// Called once. The table of threads without caches, `no_caches`, has no leaf.
    void add_first_leaf() noexcept { set_leaf(0, first, first_own_); }
    void add_leaf_of(unsigned number, OwnLeaf& leaf) noexcept {
        more_[number / leaf_size] = &leaf;
        set_leaf(number / leaf_size, leaf.view, leaf.own);
    }
    /// Removes and returns a leaf that holds no cache any more. Returns nullptr if the thread does
    /// not have the leaf, or for the first leaf, which stays.
    OwnLeaf* remove_leaf(unsigned index) noexcept {
        OwnLeaf* const leaf = std::exchange(more_[index], nullptr);
        if (leaf != nullptr) set_leaf(index, empty_leaf, no_own_caches);
        return leaf;
    }

    // Used by the registry.
    ThreadCaches* next = nullptr;
    ThreadCaches* previous = nullptr;  // in the list of running threads

private:
    void set_leaf(unsigned index, detail::ThreadLeaf& view, OwnCaches& own) noexcept {
        own_[index] = &own;
        leaves[index].store(&view, std::memory_order_relaxed);
    }

    OwnCaches first_own_ = {};
    std::array<OwnCaches*, leaf_count + 1> own_ = {};  // the last: for pools without caches
    std::array<OwnLeaf*, leaf_count> more_ = {};
};

/// The table of threads without caches. Never written.
extern constinit ThreadCaches no_caches;

inline ThreadCaches& own_caches() noexcept {
    return static_cast<ThreadCaches&>(*detail::thread_table);
}

/// Returns the calling thread's cache for this pool, or nullptr if it has none.
inline Cache* own_cache(const BucketSet& set) noexcept {
    return set.may_cache() ? own_caches().own(set.number()) : nullptr;
}

/// Returns the calling thread's cache at this position of its table, or nullptr if it has none.
inline Cache* own_cache(OwnPlace place) noexcept {
    return own_caches().own(place);
}

}  // namespace tensorpool::blocks
