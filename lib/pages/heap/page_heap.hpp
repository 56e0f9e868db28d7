#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "pages/heap/heap_shard.hpp"
#include "pages/heap/shards.hpp"

namespace tensorpool::pages {

/// One pool's pages. They are divided among shards (shards.hpp): each thread takes free memory of
/// its shard first, then of others, and then lets its own shard grow. The capacity is all that is
/// committed. Thread-safe. System calls that drop pages are made without a lock, except when pages
/// are moved and when addresses are returned in order to borrow others.
class PageHeap {
public:
    PageHeap(AddressSpace& space, limits::CommitBudget& process, unsigned pool_number,
             const HeapOptions& options, statistics::PoolTotals& totals) noexcept;
    PageHeap(const PageHeap&) = delete;
    PageHeap& operator=(const PageHeap&) = delete;
    /// Returns everything to the system, including spans in use.
    ~PageHeap();

    /// Returns a committed span, and grows the heap if needed. A span of the kind `marked` lies at
    /// low addresses (address_space.hpp) if some are left. Returns nullptr if growth is refused. In
    /// that case free memory may have been given back to make room, and addresses returned; nothing
    /// else has changed.
    Span* allocate(const PageRequest& request, SlowPath& path) noexcept;
    /// Frees a span in use. Gives free memory back if more is free than the retention limit allows.
    void free(Span& span, Changes& changes, Zeroed zeroed = Zeroed::no) noexcept;
    /// Grows a span in use to `pages` pages in place if the memory behind it is free. Returns
    /// false, and changes nothing, otherwise.
    bool extend(Span& span, PageCount pages, SlowPath& path) noexcept;
    /// Moves the pages of a span in use with their content to a cold run of `pages` pages. Only the
    /// difference is committed. Returns an extent with the old addresses, which the caller passes
    /// to `take_left`. Returns nullptr, and leaves the span unchanged, if free memory could hold
    /// the block or if nothing can be moved.
    Span* move(Span& span, PageCount pages, SlowPath& path) noexcept;
    /// Adds the extent that `move` returned to the free extents.
    void take_left(Span& left) noexcept;

    /// Commits memory until the capacity is at least `bytes`, and touches all free memory. Returns
    /// false if that is refused. In that case nothing is committed, but addresses of cold memory
    /// may have been returned. Other threads are served while it touches pages.
    bool reserve(std::size_t bytes, SlowPath& path) noexcept;
    /// Touches pages in use that were committed recently and will all be written, with larger pages
    /// if those are the cheapest. If the system refuses, the first access touches them.
    void prefault(PageRun run) noexcept;
    /// If a bucket's new span requested a huge page, touches that page and records its cost. The
    /// caller has a block of the span and holds no lock.
    void try_huge_page(const SlowPath& path) noexcept;
    /// Gives back all free memory, including what `reserve` prepared, and returns its addresses.
    /// Returns the bytes given back.
    std::size_t trim(Changes& changes) noexcept;
    /// Gives back up to `bytes` free bytes, but nothing that `reserve` prepared.
    void give_back(std::size_t bytes, Changes& changes) noexcept;
    /// Lets the system take all free memory, which stays committed and is used as before. For use
    /// when memory is short, also for other processes and other parts of this one.
    void offer_free() noexcept;
    /// Returns the free bytes that take memory and that the system may not take.
    std::size_t unoffered_bytes() const noexcept;
    /// If a retention period has ended, gives back the memory that was not needed during all of it
    /// and returns true. Takes no lock if none has ended.
    bool keep_to_retention(Changes& changes) noexcept;
    /// Counts `bytes` of memory outside of the heap's spans, which a guarded block is
    /// about to take, in the capacity and the commit budget. Returns false, and counts nothing, if
    /// the limit or the budget does not allow it.
    bool charge_outside(std::size_t bytes) noexcept;
    void refund_outside(std::size_t bytes) noexcept;
    /// Ends the marks of all blocks in use. REQUIRES: no other call is under way.
    void end_marks() noexcept;
    /// Returns the addresses of cold memory to the address space, in whole granules.
    void lend_back() noexcept;
    /// The number of the current period.
    std::uint32_t period() const noexcept { return common_.retention.period(); }
    /// The length of a period that begins now.
    std::uint64_t period_ns() const noexcept;
    /// Sets the limit up to which the capacity may grow from now on; 0 means no limit. Memory above
    /// it that `reserve` prepared may be given back. REQUIRES: the lock is held.
    void limit_capacity(std::size_t bytes) noexcept;

    std::size_t capacity() const noexcept { return common_.capacity(); }
    std::size_t lent_bytes() const noexcept { return common_.lent_bytes(); }
    /// Counts bytes of free blocks that enter (or, if negative, leave) depots or threads' caches.
    /// If retention is limited, they count as free memory.
    void note_kept_elsewhere(std::ptrdiff_t bytes) noexcept {
        if (options().retain.bytes == SIZE_MAX) [[likely]]
            return;
        kept_elsewhere_.fetch_add(static_cast<std::size_t>(bytes), std::memory_order_relaxed);
    }
    /// Returns whether retention allows `bytes` more free bytes in depots, threads' caches or the
    /// large-block cache.
    bool may_keep_elsewhere(std::size_t bytes) const noexcept {
        return options().retain.bytes == SIZE_MAX || kept_bytes() + bytes <= options().retain.bytes;
    }

    AddressSpace& space() noexcept { return common_.space; }
    unsigned pool_number() const noexcept { return common_.number; }
    const HeapOptions& options() const noexcept { return common_.options; }

    /// Called in the child of a fork, where threads that touched memory do not exist. The lock is
    /// not held.
    void after_fork_in_child() noexcept { common_.touching = 0; }

    /// The lock of growth and those of all shards. While it is held, look-ups of any address are
    /// safe.
    void lock() noexcept;
    void unlock() noexcept;

private:
    HeapShard& own_shard() noexcept;
    HeapShard* make_shard(unsigned number) noexcept;
    HeapShard* marked_shard() noexcept;
    template <class Function>
    void for_each_shard(Function function) noexcept {
        shards_.for_each(function);
        HeapShard* const marked = marked_.load(std::memory_order_acquire);
        if (marked != nullptr) function(*marked);
    }
    void end_marks(PageRun lent) noexcept;
    static void discard(HeapShard& shard) noexcept;
    HeapShard& shard_of(const Span& span) noexcept;

    // page_heap.cpp
    Span* take_free(const PageRequest& request, SlowPath& path) noexcept;
    Span* take_marked(const PageRequest& request, SlowPath& path) noexcept;
    Span* grow_and_take(HeapShard& own, const PageRequest& request, SlowPath& path) noexcept;
    Span* take_by_growth(HeapShard& own, const PageRequest& request, SlowPath& path) noexcept;
    std::size_t kept_bytes() const noexcept;
    void report_free(Refusal& refusal) noexcept;
    bool commit_up_to(std::size_t bytes, SlowPath& path) noexcept;

    // page_heap_giving.cpp
    enum class Floor : bool { ignored, kept };
    std::size_t give_back(std::size_t bytes, Floor floor, Changes& changes) noexcept;

    // page_heap_fresh.cpp
    void touch_fresh(Folio folio, PageNumber first, std::size_t bytes) noexcept;

    // While an object of this class exists, free memory may be touched without the lock: the heap
    // keeps its addresses.
    class Touching {
    public:
        explicit Touching(HeapCommon& common) noexcept : common_(common) {
            const std::lock_guard guard(common.growth);
            ++common.touching;
        }
        ~Touching() {
            const std::lock_guard guard(common_.growth);
            --common_.touching;
        }
        Touching(const Touching&) = delete;
        Touching& operator=(const Touching&) = delete;

    private:
        HeapCommon& common_;
    };

    HeapCommon common_;
    std::atomic<std::size_t> kept_elsewhere_ = 0;  // relaxed: a count that orders nothing
    PerShard<HeapShard> shards_;
    // Of marked spans. Made at first use, under the lock of the first shard; acquire and release.
    std::atomic<HeapShard*> marked_ = nullptr;
};

}  // namespace tensorpool::pages
