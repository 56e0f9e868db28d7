#include "pages/page_map.hpp"

#include "pages/span.hpp"

namespace tensorpool::pages {
namespace {

bool holds(PageEntry entry, PageNumber page, unsigned pool_number) noexcept {
    if (entry.empty() || entry.pool_number() != pool_number) return false;
    const Span& span = *entry.span();
    return page >= span.first_page && page < span.end_page();
}

// Release pairs with the acquire of look-ups: a thread that finds the span sees its members.
void store(PageMap::Word& word, PageEntry entry) noexcept {
    word.store(entry.word(), std::memory_order_release);
}

}  // namespace

PageEntry PageMap::find(const void* p, unsigned pool_number) const noexcept {
    const PageEntry own = at(p);
    if (!own.empty()) return own.pool_number() == pool_number ? own : PageEntry();
    const std::size_t pages = page_count();
    const std::size_t page = offset_of(p) >> page_shift;
    if (page >= pages) return PageEntry();
    const auto wanted = static_cast<PageNumber>(page);
    const PageNumber granule = wanted / granule_pages;
    for (PageNumber before = wanted; before-- > granule * granule_pages;) {
        const PageEntry entry = at(before);
        if (!entry.empty()) return holds(entry, wanted, pool_number) ? entry : PageEntry();
    }
    const PageEntry entry(granules_[granule].load(std::memory_order_acquire));
    return holds(entry, wanted, pool_number) ? entry : PageEntry();
}

void PageMap::set_all(PageRun run, PageEntry entry) noexcept {
    for (PageNumber page = run.first; page < run.first + run.count; ++page) {
        store(entries_[page], entry);
    }
}

void PageMap::set_ends(const Span& span, PageEntry entry) noexcept {
    store(entries_[span.first_page], entry);
    store(entries_[span.end_page() - 1], entry);
}

void PageMap::set_granules(const Span& span, PageEntry entry) noexcept {
    const PageNumber first = (span.first_page + granule_pages - 1) / granule_pages;
    for (PageNumber granule = first; granule * granule_pages < span.end_page(); ++granule) {
        store(granules_[granule], entry);
    }
}

void PageMap::clear_last(const Span& span) noexcept {
    if (span.pages > 1) store(entries_[span.end_page() - 1], PageEntry());
}

void PageMap::clear(PageRun granules) noexcept {
    const PageNumber end = granules.first + granules.count;
    for (PageNumber page = granules.first; page != end; page += granule_pages) {
        store(granules_[page / granule_pages], PageEntry());
    }
    const PageRun dropped = drop(granules);
    if (dropped.count == 0) return set_all(granules, PageEntry());
    const PageNumber dropped_end = dropped.first + dropped.count;
    set_all({granules.first, dropped.first - granules.first}, PageEntry());
    set_all({dropped_end, end - dropped_end}, PageEntry());
}

PageRun PageMap::drop(PageRun granules) noexcept {
    // Readers take no lock, so the entries must stay readable at all times.
    const std::size_t unit = platform::page_bytes();
    const std::size_t from = base::align_up(granules.first * sizeof(Word), unit);
    const std::size_t to =
        base::align_down((std::size_t{granules.first} + granules.count) * sizeof(Word), unit);
    if (to <= from) return {};
    std::byte* const entries = reinterpret_cast<std::byte*>(entries_);
    if (!platform::decommit(entries + from, to - from)) return {};
    return {static_cast<PageNumber>(from / sizeof(Word)),
            static_cast<PageCount>((to - from) / sizeof(Word))};
}

}  // namespace tensorpool::pages
