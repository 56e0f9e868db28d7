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
    const std::size_t page = (reinterpret_cast<std::uintptr_t>(p) - base()) >> page_shift;
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

}  // namespace tensorpool::pages
