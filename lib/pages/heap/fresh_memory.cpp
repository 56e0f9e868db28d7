#include "pages/heap/fresh_memory.hpp"

namespace tensorpool::pages {
namespace {

constinit FolioChoice the_folio_choice(platform::folio_sizes);

}  // namespace

FolioChoice& folio_choice() noexcept {
    return the_folio_choice;
}

Folio FolioChoice::for_granule(Advice advice) noexcept {
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

void FolioChoice::note(Folio folio, std::uint64_t ns) noexcept {
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

// Medium pages always cost a quarter of small ones. If the system has them, a huge page is tried
// only after the first pause.
unsigned FolioChoice::look() noexcept {
    const platform::FolioSizes sizes = sizes_of_system_();
    if (sizes.medium != 0) paused_.store(first_pause, std::memory_order_relaxed);
    const unsigned known =
        looked | (sizes.medium != 0 ? has_medium : 0U) | (sizes.huge ? has_huge : 0U);
    known_.store(known, std::memory_order_relaxed);
    return known;
}

static_assert(granule_pages * page_bytes == platform::huge_page_bytes);

namespace {

void request_pages(char* begin, std::size_t bytes, Folio folio) noexcept {
    if (folio == Folio::huge) platform::prefer_huge_pages(begin, bytes);
    if (folio == Folio::medium) platform::prefer_medium_pages(begin, bytes);
}

}  // namespace

// A granule's request is made when the first span in it is cut off, so that the measured cost of
// the previous granule is taken into account. At the beginning of an extent, the rest of a partial
// granule requests medium pages.
void FreshMemory::request_for_run(Span& extent, PageRun run, SlowPath& path) const noexcept {
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

// Measures processor time, so that other threads on a busy machine do not count as the cost of a
// page.
void FreshMemory::touch(Folio folio, PageNumber first, std::size_t bytes) const noexcept {
    const std::uint64_t begin_ns = options_.thread_time_ns();
    platform::prefault(space_.address_of(first), bytes);
    const std::uint64_t end_ns = options_.thread_time_ns();
    if (end_ns >= begin_ns) options_.folios->note(folio, end_ns - begin_ns);
}

void FreshMemory::prefault(PageRun run) const noexcept {
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
    // Revokes the request: after the block is freed, the next user may never touch all of it. Also,
    // adjacent memory with equal requests is one mapping.
    if (largest != Folio::small) {
        platform::prefer_small_pages(space_.address_of(run.first), run.count * page_bytes);
    }
}

}  // namespace tensorpool::pages
