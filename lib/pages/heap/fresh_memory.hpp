#pragma once

#include "pages/address_space.hpp"
#include "pages/heap/page_request.hpp"
#include "pages/span.hpp"

namespace tensorpool::pages {

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
    Folio for_granule(Advice advice = Advice::permanent) noexcept;
    /// Returns the size of pages to request for less than a granule, into which no huge page fits.
    Folio for_part() noexcept { return has(has_medium) ? Folio::medium : Folio::small; }
    /// Records the processor time, in nanoseconds, that a granule's first touch took: of the whole
    /// granule, or of one page of a granule that requested a huge page.
    void note(Folio folio, std::uint64_t ns) noexcept;

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
    unsigned look() noexcept;

    const Sizes sizes_of_system_;
    std::atomic<unsigned> known_ = 0;
    std::atomic<std::uint32_t> paused_ = 0;  // granules until a huge page is tried again
    std::atomic<std::uint32_t> next_pause_ = first_pause;
    std::atomic<std::uint32_t> split_ = 0;  // granules with permanent requests for medium pages
    std::atomic<std::uint64_t> other_ns_ = usual_ns;
};

/// The object that all pools of the process share.
FolioChoice& folio_choice() noexcept;

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
    /// whole, and for the granule that begins in it. The caller holds the shard's lock.
    void request_for_run(Span& extent, PageRun run, SlowPath& path) const noexcept;
    /// Touches the first page of a granule that requested a huge page, and records the cost. The
    /// heap keeps the addresses during that.
    void try_huge_page(PageRun granule) const noexcept {
        touch(Folio::huge, granule.first, platform::page_bytes());
    }
    /// Touches pages in use that were committed recently and will all be written, with larger pages
    /// if those are the cheapest. If the system refuses, the first access touches them.
    void prefault(PageRun run) const noexcept;

private:
    bool measures() const noexcept {
        return options_.folios != nullptr && options_.huge_pages == HugePages::buckets;
    }
    void touch(Folio folio, PageNumber first, std::size_t bytes) const noexcept;

    AddressSpace& space_;
    const HeapOptions& options_;
};

}  // namespace tensorpool::pages
