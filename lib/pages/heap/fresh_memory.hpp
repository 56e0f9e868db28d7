#pragma once

#include "pages/address_space.hpp"
#include "pages/heap/page_request.hpp"

namespace tensorpool::pages {

static_assert(granule_pages * page_bytes == platform::huge_page_bytes);

/// Sizes of the system's pages: small, the usual size; medium, between small and huge (16 KiB to
/// 1 MiB on newer Linux); and huge.
enum class Folio : std::uint8_t { small, medium, huge };

/// Decides which size of pages to request for the next granule of fresh memory, based on the cost
/// of the previous ones.
///
/// Huge pages are the cheapest if the system has them available: 90 µs for 2 MiB on the machine
/// measured, compared with 650 µs for small pages. They are the most expensive if the system first
/// has to find memory: 5,000 µs under a hypervisor that takes free memory back
/// (perf/results/fresh.md). It cannot be predicted which of the two will happen. After an expensive
/// huge page a pause begins, in which granules request medium pages or none. Each pause is twice as
/// long as the previous one, until a huge page is cheap again.
///
/// Thread-safe. All atomics are relaxed: they are heuristics, and none guards memory.
class FolioChoice {
public:
    using Sizes = platform::FolioSizes (*)() noexcept;

    // Pauses, in granules of 2 MiB. One expensive huge page costs as much as about eight granules
    // of small pages. That is a sixteenth of the first pause, and less of each following one.
    static constexpr std::uint32_t first_pause = 128;
    static constexpr std::uint32_t longest_pause = 4096;
    // If huge pages are enabled, each granule of medium pages is a mapping of its own, and so is
    // the page before it, until the pool is destroyed or revokes the request. The limit keeps them
    // at 1,000 mappings, of the 65,530 that Linux allows. Revoked requests and returned addresses
    // count too, so this is the number of such granules in the lifetime of the process.
    static constexpr std::uint32_t max_split = 500;
    // The assumed cost of a granule of small pages before one was measured: 2 µs per page.
    static constexpr std::uint64_t usual_ns = 1'000'000;

    constexpr explicit FolioChoice(Sizes sizes) noexcept : sizes_of_system_(sizes) {}

    /// Whether a granule's request for larger pages is revoked after its first touch, or stays.
    enum class Advice : bool { temporary, permanent };
    /// Returns the size of pages to request for a granule before its first touch.
    Folio for_granule(Advice advice = Advice::permanent) noexcept {
        if (!has(has_huge)) return for_part();
        const std::uint32_t left = paused_.load(std::memory_order_relaxed);
        if (left == 0) return Folio::huge;
        // If two threads count one granule at the same time, the pause is one granule longer.
        paused_.store(left - 1, std::memory_order_relaxed);
        if (!has(has_medium)) return Folio::small;
        if (advice == Advice::temporary) return Folio::medium;
        if (split_.load(std::memory_order_relaxed) >= max_split) return Folio::small;
        split_.fetch_add(1, std::memory_order_relaxed);
        return Folio::medium;
    }
    /// Returns the size of pages to request for less than a granule, into which no huge page fits.
    Folio for_part() noexcept { return has(has_medium) ? Folio::medium : Folio::small; }
    /// Records the processor time, in nanoseconds, that a granule's first touch took: of the whole
    /// granule, or of one page of a granule that requested a huge page.
    void note(Folio folio, std::uint64_t ns) noexcept {
        const std::uint64_t other = other_ns_.load(std::memory_order_relaxed);
        if (folio != Folio::huge) {
            other_ns_.store((3 * other + ns) / 4, std::memory_order_relaxed);
        } else if (ns <= 2 * other) {
            next_pause_.store(first_pause, std::memory_order_relaxed);
        } else {
            const std::uint32_t pause = next_pause_.load(std::memory_order_relaxed);
            paused_.store(pause, std::memory_order_relaxed);
            next_pause_.store(std::min(2 * pause, longest_pause), std::memory_order_relaxed);
        }
    }

private:
    // Bits of `known_`.
    static constexpr unsigned looked = 1;
    static constexpr unsigned has_medium = 2;
    static constexpr unsigned has_huge = 4;
    bool has(unsigned what) noexcept {
        unsigned known = known_.load(std::memory_order_relaxed);
        if (known == 0) known = look();
        return (known & what) != 0;
    }
    // Medium pages always cost a quarter of small ones. If the system has them, a huge page is
    // tried only after the first pause.
    unsigned look() noexcept {
        const platform::FolioSizes sizes = sizes_of_system_();
        if (sizes.medium != 0) paused_.store(first_pause, std::memory_order_relaxed);
        const unsigned known =
            looked | (sizes.medium != 0 ? has_medium : 0U) | (sizes.huge ? has_huge : 0U);
        known_.store(known, std::memory_order_relaxed);
        return known;
    }

    const Sizes sizes_of_system_;
    std::atomic<unsigned> known_ = 0;
    std::atomic<std::uint32_t> paused_ = 0;  // granules until a huge page is tried again
    std::atomic<std::uint32_t> next_pause_ = first_pause;
    std::atomic<std::uint32_t> split_ = 0;  // granules with permanent requests for medium pages
    std::atomic<std::uint64_t> other_ns_ = usual_ns;
};

inline constinit FolioChoice the_folio_choice(platform::folio_sizes);

/// The object that all pools of the process share.
inline FolioChoice& folio_choice() noexcept {
    return the_folio_choice;
}

inline void request_pages(char* begin, std::size_t bytes, Folio folio) noexcept {
    if (folio == Folio::huge) platform::prefer_huge_pages(begin, bytes);
    if (folio == Folio::medium) platform::prefer_medium_pages(begin, bytes);
}

/// Requests larger pages for memory of one page heap that was not touched yet, and measures what
/// first touches cost. Thread-safe.
class FreshMemory {
public:
    /// Keeps a reference to the options.
    FreshMemory(AddressSpace& space, const HeapOptions& options) noexcept
        : space_(space), options_(options) {}

    /// Requests huge pages for an extent, once. The caller holds the shard's lock.
    void request_huge_pages(Span& extent) const noexcept {
        if (!extent.clean || extent.huge) return;
        platform::prefer_huge_pages(space_.address_of(extent.first_page), extent.bytes());
        extent.huge = true;
    }
    /// Requests larger pages for a run that is about to be cut out of an extent and will be touched
    /// whole, and for the granule that begins in it. The caller holds the shard's lock. A granule's
    /// request is made when the first span in it is cut off, so that the measured cost of the
    /// previous granule is taken into account. At the beginning of an extent, the rest of a partial
    /// granule requests medium pages.
    void request_for_run(Span& extent, PageRun run, SlowPath& path) const noexcept {
        if (!measures()) return request_huge_pages(extent);
        if (!extent.clean) return;
        const auto granule =
            static_cast<PageNumber>(base::align_up(run.first, std::size_t{granule_pages}));
        if (granule < run.first + run.count && granule + granule_pages <= extent.end_page()) {
            const Folio folio = options_.folios->for_granule();
            request_pages(space_.address_of(granule), granule_pages * page_bytes, folio);
            if (folio == Folio::huge) path.untried = {granule, granule_pages};
        } else if (!extent.huge) {
            const PageCount pages = std::min(granule, extent.end_page()) - run.first;
            request_pages(space_.address_of(run.first), pages * page_bytes,
                          options_.folios->for_part());
        }
        extent.huge = true;
    }
    /// Touches the first page of a granule that requested a huge page, and records the cost. The
    /// heap keeps the addresses during that.
    void try_huge_page(PageRun granule) const noexcept {
        touch(Folio::huge, granule.first, platform::page_bytes());
    }
    /// Touches pages in use that were committed recently and will all be written, with larger pages
    /// if those are the cheapest. If the system refuses, the first access touches them.
    void prefault(PageRun run) const noexcept {
        if (!measures()) {
            platform::prefault(space_.address_of(run.first), run.count * page_bytes);
            return;
        }
        const PageNumber end = run.first + run.count;
        Folio largest = Folio::small;
        for (PageNumber at = run.first; at != end;) {
            const PageNumber granule_end = at / granule_pages * granule_pages + granule_pages;
            const PageRun piece{at, std::min(granule_end, end) - at};
            const bool whole = piece.count == granule_pages;
            const Folio folio = whole ? options_.folios->for_granule(FolioChoice::Advice::temporary)
                                      : options_.folios->for_part();
            request_pages(space_.address_of(at), piece.count * page_bytes, folio);
            if (whole) {
                touch(folio, at, platform::huge_page_bytes);
            } else {
                platform::prefault(space_.address_of(at), piece.count * page_bytes);
            }
            largest = std::max(largest, folio);
            at += piece.count;
        }
        // Revokes the request: after the block is freed, the next user may never touch all of it.
        // Also, adjacent memory with equal requests is one mapping.
        if (largest != Folio::small) {
            platform::prefer_small_pages(space_.address_of(run.first), run.count * page_bytes);
        }
    }

private:
    bool measures() const noexcept {
        return options_.folios != nullptr && options_.huge_pages == HugePages::buckets;
    }
    // Measures processor time, so that other threads on a busy machine do not count as the cost of
    // a page.
    void touch(Folio folio, PageNumber first, std::size_t bytes) const noexcept {
        const std::uint64_t begin_ns = options_.thread_time_ns();
        platform::prefault(space_.address_of(first), bytes);
        const std::uint64_t end_ns = options_.thread_time_ns();
        if (end_ns >= begin_ns) options_.folios->note(folio, end_ns - begin_ns);
    }

    AddressSpace& space_;
    const HeapOptions& options_;
};

}  // namespace tensorpool::pages
