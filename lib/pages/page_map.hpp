#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tensorpool/detail/buckets.hpp>

namespace tensorpool::pages {

struct Span;

/// The heap's page. Pages of the system are a whole number of these (macOS: four), so what is
/// committed and decommitted is cut to theirs.
inline constexpr std::size_t page_shift = 12;
inline constexpr std::size_t page_bytes = std::size_t{1} << page_shift;
/// Pages of a granule: what the address space lends, and a huge page on x86-64.
inline constexpr std::uint32_t granule_pages = 512;

using PageNumber = std::uint32_t;
using PageCount = std::uint32_t;

/// A run of pages, neither owned nor described.
struct PageRun {
    PageNumber first = 0;
    PageCount count = 0;
};

/// What a page belongs to. Buckets take the first numbers, and those of the finer series
/// (base/block_sizes.hpp) the same ones and 16 times their series.
enum class PageKind : std::uint8_t {
    none = 0,
    first_bucket = 1,
    large_in_use = detail::bucket_count + 1,  // whole pages that a caller holds
    large_cached,                             // whole pages in the large-block cache
    extent_hot,                               // free and committed
    extent_cold,                              // free and not committed
};
inline constexpr unsigned kinds_of_series = 16;
static_assert(static_cast<unsigned>(PageKind::extent_cold) < kinds_of_series);

constexpr PageKind kind_of_bucket(unsigned bucket, unsigned series = 0) noexcept {
    return static_cast<PageKind>(kinds_of_series * series + bucket + 1);
}

/// One word for each page: the span it belongs to, the number of its pool, and its kind. A span is
/// aligned to 64, an address has 48 bits: the rest is room for the other two.
class PageEntry {
public:
    constexpr PageEntry() noexcept = default;
    explicit constexpr PageEntry(std::uint64_t word) noexcept : word_(word) {}
    PageEntry(const Span* span, unsigned pool_number, PageKind kind) noexcept
        : word_(reinterpret_cast<std::uint64_t>(span) | std::uint64_t{pool_number} << 48 |
                static_cast<std::uint64_t>(kind)) {}

    /// The same entry of this span, where it is one of no span.
    PageEntry with(const Span& span) const noexcept {
        return PageEntry(word_ | reinterpret_cast<std::uint64_t>(&span));
    }

    std::uint64_t word() const noexcept { return word_; }
    Span* span() const noexcept {
        return reinterpret_cast<Span*>(word_ & ((std::uint64_t{1} << 48) - 64));
    }
    unsigned pool_number() const noexcept { return static_cast<unsigned>(word_ >> 48); }
    PageKind kind() const noexcept { return static_cast<PageKind>(word_ & 63); }
    bool is_bucket() const noexcept { return bucket() < detail::bucket_count; }
    unsigned bucket() const noexcept { return static_cast<unsigned>(word_ % kinds_of_series) - 1; }
    unsigned series() const noexcept { return static_cast<unsigned>(word_ & 63) / kinds_of_series; }
    bool empty() const noexcept { return word_ == 0; }

private:
    std::uint64_t word_ = 0;
};

/// The entries of all pages up to the highest that was ever lent, flat. All pages of a bucket's
/// span have one; of other spans only the first and the last page, and each granule that begins
/// inside. All other words are zero. Entries of a span in use do not change, so its holder reads
/// them without a lock.
class PageMap {
public:
    using Word = std::atomic<std::uint64_t>;

    /// No page has an entry yet.
    void set_up(std::uintptr_t base, Word* entries, Word* granules) noexcept {
        base_.store(base, std::memory_order_relaxed);
        entries_ = entries;
        granules_ = granules;
    }
    /// From now on so many pages have entries, which are zeros to begin with, as are the words of
    /// their granules.
    void grow(PageCount pages) noexcept {
        // Released: who sees the pages sees the rest.
        pages_.store(pages, std::memory_order_release);
    }

    /// The entry of the page at `p`, empty outside of the map.
    PageEntry at(const void* p) const noexcept {
        // First of all: what is there of the rest is known after it.
        const std::size_t pages = pages_.load(std::memory_order_acquire);
        const std::size_t page = (reinterpret_cast<std::uintptr_t>(p) - base()) >> page_shift;
        if (page >= pages) [[unlikely]]
            return PageEntry();
        return at(static_cast<PageNumber>(page));
    }
    PageEntry at(PageNumber page) const noexcept {
        return PageEntry(entries_[page].load(std::memory_order_acquire));
    }

    /// The span of this pool that holds `p`, also where p's own page has no entry; empty when there
    /// is none. The caller holds the lock of the pool's heap, so that its records stay; what is of
    /// another pool is not looked at.
    PageEntry find(const void* p, unsigned pool_number) const noexcept;

    /// Entries of one span. The caller holds the heap's lock.
    void set_all(const Span& span, PageEntry entry) noexcept;
    void set_ends(const Span& span, PageEntry entry) noexcept;
    void set_granules(const Span& span, PageEntry entry) noexcept;
    /// The first page's entry only: tells whether a large block is in use. Without the lock, by
    /// the block's holder.
    void set_first(PageNumber first, PageEntry entry) noexcept {
        entries_[first].store(entry.word(), std::memory_order_release);
    }
    /// The last page's entry, unless that is the first as well: the holder of a span in use may
    /// read the first one at any moment.
    void clear_last(const Span& span) noexcept;

    char* address_of(PageNumber page) const noexcept {
        return reinterpret_cast<char*>(base() + (std::uintptr_t{page} << page_shift));
    }
    PageNumber page_of(const void* p) const noexcept {
        return static_cast<PageNumber>((reinterpret_cast<std::uintptr_t>(p) - base()) >>
                                       page_shift);
    }
    /// From the first page's address; more than any page has where `p` lies before it.
    std::size_t offset_of(const void* p) const noexcept {
        return reinterpret_cast<std::uintptr_t>(p) - base();
    }
    PageCount page_count() const noexcept { return pages_.load(std::memory_order_acquire); }
    Word* entries() const noexcept { return entries_; }
    Word* granules() const noexcept { return granules_; }

private:
    std::uintptr_t base() const noexcept { return base_.load(std::memory_order_relaxed); }

    // Relaxed: pages_ orders it, and while that is 0 its value does not matter.
    std::atomic<std::uintptr_t> base_ = 0;
    Word* entries_ = nullptr;
    Word* granules_ = nullptr;
    // Pairs with itself: `grow` releases, look-ups acquire. At first it is 0: nothing is ours.
    std::atomic<PageCount> pages_ = 0;
};

}  // namespace tensorpool::pages
