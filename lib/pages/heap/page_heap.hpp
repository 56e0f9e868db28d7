#pragma once

#include "pages/heap/heap_shard.hpp"

namespace tensorpool::pages {

/// The shards of one page heap (shards.hpp), and the marked shard, from which spans of the kind
/// `marked` come. All but the first are made at first use. Thread-safe.
class HeapShards {
public:
    explicit HeapShards(HeapCommon& common) noexcept : common_(common), shards_(common, 0U) {}
    ~HeapShards();

    /// Returns the calling thread's shard. The caller holds no shard's lock.
    HeapShard& own() noexcept {
        return shards_.own([this](unsigned number) noexcept { return make(number); }, discard);
    }
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
    void report_free(Refusal& refusal) noexcept {
        refusal.knows_free = true;
        refusal.free_pages = 0;
        refusal.largest_free = 0;
        for_each([&](HeapShard& shard) { shard.report_free(refusal); });
    }

    /// All locks. While they are held, no shard is made.
    void lock() noexcept {
        for_each([](HeapShard& shard) { shard.lock(); });
    }
    void unlock() noexcept {
        // The first shard last: while it is locked, no other shard is made.
        if (HeapShard* const marked = marked_.load(std::memory_order_relaxed)) marked->unlock();
        shards_.for_each_other(shards_.first(), [](HeapShard& shard) { shard.unlock(); });
        shards_.first().unlock();
    }

private:
    HeapShard* make(unsigned number) noexcept;
    static void discard(HeapShard& shard) noexcept {
        shard.~HeapShard();
        platform::unmap(&shard, sizeof(HeapShard));
    }

    HeapCommon& common_;
    PerShard<HeapShard> shards_;
    // Made under the lock of the first shard; acquire and release.
    std::atomic<HeapShard*> marked_ = nullptr;
};

/// One pool's pages. They are divided among shards (shards.hpp): each thread takes free memory of
/// its shard first, then of others, and then lets its own shard grow. The capacity is all that is
/// committed. Thread-safe. System calls that drop pages are made without a lock, except when pages
/// are moved and when addresses are returned in order to borrow others.
class PageHeap {
public:
    PageHeap(AddressSpace& space, limits::CommitBudget& process, unsigned pool_number,
             const HeapOptions& options, statistics::PoolTotals& totals) noexcept;
    /// Returns everything to the system, including spans in use.
    ~PageHeap();

    /// Returns a committed span, and grows the heap if needed. A span of the kind `marked` lies at
    /// low addresses (address_space.hpp) if some are left. Returns nullptr if growth is refused. In
    /// that case free memory may have been given back to make room, and addresses returned; nothing
    /// else has changed.
    Span* allocate(const PageRequest& request, SlowPath& path) noexcept;
    /// Frees a span in use. Gives free memory back if more is free than the retention limit allows.
    void free(Span& span, Changes& changes, Zeroed zeroed = Zeroed::no) noexcept {
        shards_.of(span).free(span, zeroed);
        if (const std::size_t excess = kept().excess(); excess != 0) give_back(excess, changes);
    }
    /// Grows a span in use to `pages` pages in place if the memory behind it is free. Returns
    /// false, and changes nothing, otherwise.
    bool extend(Span& span, PageCount pages, SlowPath& path) noexcept {
        HeapShard& shard = shards_.of(span);
        if (shard.extend(span, pages, HeapShard::MayCommit::no, path)) return true;
        const std::lock_guard guard(common_.growth);
        return shard.extend(span, pages, HeapShard::MayCommit::yes, path);
    }
    /// Frees all but the first `pages` pages of a span in use. Returns false, and changes nothing,
    /// if there is no memory for a record.
    bool shorten(Span& span, PageCount pages) noexcept {
        return shards_.of(span).shorten(span, pages);
    }
    /// Moves the pages of a span in use with their content to a cold run of `pages` pages. Only the
    /// difference is committed. Returns an extent with the old addresses, which the caller passes
    /// to `take_left`. Returns nullptr, and leaves the span unchanged, if free memory could hold
    /// the block or if nothing can be moved.
    Span* move(Span& span, PageCount pages, SlowPath& path) noexcept;
    /// Adds the extent that `move` returned to the free extents.
    void take_left(Span& left) noexcept { shards_.of(left).take_left(left); }

    /// Commits memory until the capacity is at least `bytes`, and touches all free memory. Returns
    /// false if that is refused. In that case nothing is committed, but addresses of cold memory
    /// may have been returned. Other threads are served while it touches pages.
    bool reserve(std::size_t bytes, SlowPath& path) noexcept;
    /// If a bucket's new span requested a huge page, touches that page and records its cost. The
    /// caller has a block of the span and holds no lock.
    void try_huge_page(const SlowPath& path) noexcept;
    /// Gives back all free memory, including what `reserve` prepared, and returns its addresses.
    /// Returns the bytes given back.
    std::size_t trim(Changes& changes) noexcept;
    /// Whether what `reserve` prepared may be given back.
    enum class Prepared : bool { kept, given_back };
    /// Gives back up to `bytes` free bytes. Returns the bytes given back.
    std::size_t give_back(std::size_t bytes, Changes& changes,
                          Prepared prepared = Prepared::kept) noexcept;
    /// Lets the system take all free memory, which stays committed and is used as before. For use
    /// when memory is short, also for other processes and other parts of this one.
    void offer_free() noexcept {
        std::size_t offered = 0;
        shards_.for_each([&](HeapShard& shard) { offered += shard.offer_free(); });
        kept().note_offered(offered);
    }
    /// If a retention period has ended, gives back the memory that was not needed during all of it
    /// and returns true. Takes no lock if none has ended.
    bool keep_to_retention(Changes& changes) noexcept;
    /// Ends the marks of all blocks in use. REQUIRES: no other call is under way.
    void end_marks() noexcept;
    /// Returns the addresses of cold memory to the address space, in whole granules.
    void lend_back() noexcept;

    HeapCapacity& capacity() noexcept { return common_.capacity; }
    const HeapCapacity& capacity() const noexcept { return common_.capacity; }
    KeptMemory& kept() noexcept { return common_.kept; }
    const KeptMemory& kept() const noexcept { return common_.kept; }
    const FreshMemory& fresh() const noexcept { return common_.fresh; }
    AddressSpace& space() noexcept { return common_.space; }
    unsigned pool_number() const noexcept { return common_.number; }
    const HeapOptions& options() const noexcept { return common_.options; }

    /// Called in the child of a fork, where threads that touched memory do not exist. The lock is
    /// not held.
    void after_fork_in_child() noexcept { common_.touching = 0; }

    /// The lock of growth and those of all shards. While it is held, look-ups of any address are
    /// safe.
    void lock() noexcept {
        common_.growth.lock();
        shards_.lock();
    }
    void unlock() noexcept {
        shards_.unlock();
        common_.growth.unlock();
    }

private:
    Span* take_free(const PageRequest& request, SlowPath& path) noexcept;
    Span* take_marked(const PageRequest& request, SlowPath& path) noexcept;
    Span* grow_and_take(HeapShard& own, const PageRequest& request, SlowPath& path) noexcept;
    Span* take_by_growth(HeapShard& own, const PageRequest& request, SlowPath& path) noexcept;
    bool commit_up_to(std::size_t bytes, SlowPath& path) noexcept;

    HeapCommon common_;
    HeapShards shards_;
};

}  // namespace tensorpool::pages
