#pragma once

#include <atomic>
#include <cstdint>

#include <tensorpool/detail/buckets.hpp>

#include "base/block_mark.hpp"

namespace tensorpool::pages {

/// The owner of memory that a pool lent to an upper layer, which hands out blocks of it: the memory
/// of a plan. Its pages have the kind `served`, and their entries in the page map refer to an
/// object of this class, so that the functions of the pools find the owner of a block. The object
/// lives as long as the entries.
class alignas(64) ServedMemory {
public:
    struct Block {
        const void* begin = nullptr;  // nullptr: there is no block in use
        std::size_t bytes = 0;
    };
    /// Returns the block in use that contains `p`, an address of this memory. Takes no lock.
    virtual Block find(const void* p) const noexcept = 0;
    /// Returns the bytes of the block in use that begins at `p`, or 0 if there is none. Takes no
    /// lock and makes no search.
    virtual std::size_t block_bytes(const void* p) const noexcept = 0;
    /// Frees the block in use that begins at `p`. Returns false, and does nothing, if there is
    /// none. Otherwise, the memory may be released as soon as the block is free. Any thread.
    virtual bool deallocate(void* p) noexcept = 0;

protected:
    ~ServedMemory() = default;
};

struct Span;

/// The size of the heap's pages. A page of the system consists of a whole number of these (16
/// where its pages have 64 KiB), so runs are rounded to the system's pages when they are committed
/// and decommitted.
inline constexpr std::size_t page_shift = 12;
inline constexpr std::size_t page_bytes = std::size_t{1} << page_shift;
/// The pages of a granule, the unit that the address space lends. It is a huge page on x86-64.
inline constexpr std::uint32_t granule_pages = 512;
inline constexpr std::size_t granule_bytes = granule_pages * page_bytes;

using PageNumber = std::uint32_t;
using PageCount = std::uint32_t;

constexpr std::size_t bytes_of(PageCount pages) noexcept {
    return pages * page_bytes;
}

/// A range of page numbers. It implies no ownership.
struct PageRun {
    PageNumber first = 0;
    PageCount count = 0;
};

/// What a page belongs to. Buckets have the numbers from `first_bucket` on; buckets of a finer
/// series (base/block_sizes.hpp) have the same numbers plus 16 times the series.
enum class PageKind : std::uint8_t {
    none = 0,
    first_bucket = 1,
    large_in_use = detail::bucket_count + 1,  // whole pages that a caller holds
    large_cached,                             // whole pages in the large-block cache
    extent_hot,                               // free and committed
    extent_cold,                              // free and not committed
    // Numbers that no series of buckets uses.
    served = detail::bucket_count + 17,  // lent to a plan
    large_noted,                         // whole pages that a caller holds; a server notes the free
    guarded,                             // of a block that a layer above placed (PlacedBlock)
    // A bucket's span whose blocks in use are marked (block_mark.hpp). Inline frees recognize no
    // block in it.
    marked,
};
inline constexpr unsigned kinds_of_series = 16;
static_assert(static_cast<unsigned>(PageKind::extent_cold) < kinds_of_series);
static_assert(static_cast<unsigned>(PageKind::marked) < 2 * kinds_of_series);

constexpr PageKind kind_of_bucket(unsigned bucket, unsigned series = 0) noexcept {
    return static_cast<PageKind>(kinds_of_series * series + bucket + 1);
}

/// The record of a block that a layer above placed on pages of its own: the entries of these pages
/// refer to it. It lies out of band, and stays as long as the entries.
struct alignas(64) PlacedBlock {
    std::size_t requested = 0;  // bytes
    base::BlockMark* mark = nullptr;
    unsigned watcher = 0;  // like BlockMark::watcher
};

/// One word for each page: the span that it belongs to, the number of its pool, and its kind. Spans
/// are aligned to 64 bytes and addresses have 48 bits, which leaves room for the other two.
class PageEntry {
public:
    constexpr PageEntry() noexcept = default;
    explicit constexpr PageEntry(std::uint64_t word) noexcept : word_(word) {}
    PageEntry(const Span* span, unsigned pool_number, PageKind kind) noexcept
        : word_(reinterpret_cast<std::uint64_t>(span) | std::uint64_t{pool_number} << 48 |
                static_cast<std::uint64_t>(kind)) {}
    PageEntry(const PlacedBlock* block, unsigned pool_number) noexcept
        : PageEntry(reinterpret_cast<const Span*>(block), pool_number, PageKind::guarded) {}
    PageEntry(const ServedMemory* memory, unsigned pool_number) noexcept
        : PageEntry(reinterpret_cast<const Span*>(memory), pool_number, PageKind::served) {}

    /// Returns this entry with the span, which may be null. REQUIRES: this entry has no span.
    PageEntry with(const Span* span) const noexcept {
        return PageEntry(word_ | reinterpret_cast<std::uint64_t>(span));
    }

    std::uint64_t word() const noexcept { return word_; }
    Span* span() const noexcept {
        return reinterpret_cast<Span*>(word_ & ((std::uint64_t{1} << 48) - 64));
    }
    /// Returns the owner of memory of the kind `served`.
    ServedMemory* served() const noexcept { return reinterpret_cast<ServedMemory*>(span()); }
    /// Returns the record of a block that a layer above placed; nullptr for other kinds.
    PlacedBlock* placed() const noexcept {
        return kind() == PageKind::guarded ? reinterpret_cast<PlacedBlock*>(span()) : nullptr;
    }
    /// Returns whether the entry, if it is not empty, refers to a span.
    bool has_span() const noexcept {
        return kind() != PageKind::served && kind() != PageKind::guarded;
    }
    unsigned pool_number() const noexcept { return static_cast<unsigned>(word_ >> 48); }
    PageKind kind() const noexcept { return static_cast<PageKind>(word_ & 63); }
    bool is_bucket() const noexcept { return bucket() < detail::bucket_count; }
    /// Returns whether the page belongs to a bucket's span with marked blocks.
    bool is_marked() const noexcept { return kind() == PageKind::marked; }
    /// Returns whether this is the first entry of whole pages that a caller holds.
    bool is_large_in_use() const noexcept {
        return kind() == PageKind::large_in_use || kind() == PageKind::large_noted;
    }
    unsigned bucket() const noexcept { return static_cast<unsigned>(word_ % kinds_of_series) - 1; }
    unsigned series() const noexcept { return static_cast<unsigned>(word_ & 63) / kinds_of_series; }
    bool empty() const noexcept { return word_ == 0; }

private:
    std::uint64_t word_ = 0;
};

/// A flat table with one entry for each page up to the highest that was ever lent. All pages of a
/// bucket's span have an entry; of other spans, only the first and the last page and each granule
/// that begins inside. All other words are zero. Entries of a span in use do not change, so the
/// holder of its blocks reads them without a lock.
class PageMap {
public:
    using Word = std::atomic<std::uint64_t>;

    /// Sets the addresses of the first page and of the tables. No page has an entry yet.
    void set_up(std::uintptr_t base, Word* entries, Word* granules) noexcept {
        base_.store(base, std::memory_order_relaxed);
        entries_ = entries;
        granules_ = granules;
    }
    /// From now on, the first `pages` pages have entries. REQUIRES: the tables exist for them, and
    /// new words in them are zero.
    void grow(PageCount pages) noexcept {
        // Release: a thread that sees the number of pages also sees the other members.
        pages_.store(pages, std::memory_order_release);
    }

    /// The entry of the page at `p`, or an empty entry outside of the map.
    PageEntry at(const void* p) const noexcept {
        // Loaded first: the acquire makes the other members visible.
        const std::size_t pages = pages_.load(std::memory_order_acquire);
        const std::size_t page = offset_of(p) >> page_shift;
        if (page >= pages) [[unlikely]]
            return PageEntry();
        return at(static_cast<PageNumber>(page));
    }
    PageEntry at(PageNumber page) const noexcept {
        return PageEntry(entries_[page].load(std::memory_order_acquire));
    }

    /// Finds the span of this pool that contains `p`, even if the page of `p` has no entry. Returns
    /// an empty entry if there is none. The caller holds the lock of the pool's heap, so that its
    /// records stay; records of other pools are not read.
    PageEntry find(const void* p, unsigned pool_number) const noexcept;

    // Set entries of one span. REQUIRES: the heap's lock is held.
    void set_all(PageRun run, PageEntry entry) noexcept;
    void set_ends(const Span& span, PageEntry entry) noexcept;
    void set_granules(const Span& span, PageEntry entry) noexcept;
    /// Sets only the first page's entry, which shows whether a large block is in use. Called by the
    /// holder of the block, without the lock.
    void set_first(PageNumber first, PageEntry entry) noexcept {
        entries_[first].store(entry.word(), std::memory_order_release);
    }
    /// Clears the last page's entry, unless the last page is also the first: the holder of a span
    /// in use may read the first entry at any time.
    void clear_last(const Span& span) noexcept;
    /// Clears all words of whole granules.
    void clear(PageRun granules) noexcept;
    /// Drops the memory of entries that describe nothing but these whole granules, which then read
    /// as zeros. Returns the pages whose entries were dropped.
    PageRun drop(PageRun granules) noexcept;

    char* address_of(PageNumber page) const noexcept {
        return reinterpret_cast<char*>(base() + (std::uintptr_t{page} << page_shift));
    }
    PageNumber page_of(const void* p) const noexcept {
        return static_cast<PageNumber>(offset_of(p) >> page_shift);
    }
    /// The offset of `p` from the first page. If `p` lies before it, the result is larger than the
    /// offset of any page.
    std::size_t offset_of(const void* p) const noexcept {
        return reinterpret_cast<std::uintptr_t>(p) - base();
    }
    PageCount page_count() const noexcept { return pages_.load(std::memory_order_acquire); }
    Word* entries() const noexcept { return entries_; }
    Word* granules() const noexcept { return granules_; }

private:
    std::uintptr_t base() const noexcept { return base_.load(std::memory_order_relaxed); }

    // Relaxed: pages_ orders it. While pages_ is 0, its value does not matter.
    std::atomic<std::uintptr_t> base_ = 0;
    Word* entries_ = nullptr;
    Word* granules_ = nullptr;
    // The release in `grow` pairs with the acquire in look-ups. It is 0 before `grow`, so look-ups
    // find nothing.
    std::atomic<PageCount> pages_ = 0;
};

}  // namespace tensorpool::pages
