#include "pages/large_blocks.hpp"

namespace tensorpool::pages {
namespace {

// Copying a smaller block is faster than moving its pages.
constexpr std::size_t min_moved_bytes = std::size_t{1} << 20;

}  // namespace

LargeBlocks::Taken LargeBlocks::allocate(std::size_t bytes, std::size_t alignment,
                                         SlowPath& path) noexcept {
    const PageCount pages = pages_of(bytes);
    if (alignment <= page_bytes) [[likely]] {
        if (Span* const span = take_cached(pages)) return {span, true};
    }
    if (pages > join_above_pages) empty_cache(path);
    PageRequest request = request_for(pages, alignment);
    request.may_grow = false;
    Span* span = heap_.allocate(request, path);
    if (span == nullptr) {
        empty_cache(path);
        request.may_grow = true;
        span = heap_.allocate(request, path);
    }
    return {span, false};
}

void LargeBlocks::free(Span& span, Changes& changes) noexcept {
    if (may_wait(span)) {
        begin_wait_uncounted(span);
        if (cache_.keep(span)) return;
    }
    heap_.free(span, changes);
}

bool LargeBlocks::end_use(const void* p, PageEntry entry, std::size_t min_bytes,
                          std::size_t max_requested) noexcept {
    Span& span = *entry.span();
    const auto is_right = [&] {
        return heap_.space().address_of(span.first_page) == p && min_bytes <= span.bytes();
    };
    if (!is_right() || span.requested_bytes.load(std::memory_order_relaxed) > max_requested) {
        return false;
    }
    // If several threads free one block at the same time, the exchange lets only one of them find
    // it in use.
    if (span.requested_bytes.exchange(0, std::memory_order_acq_rel) == 0) return false;
    // A block in use keeps its span. If `p` was not in use, the span may have been reused for
    // another block while it was read. These comparisons detect that.
    return heap_.space().map().at(p).word() == entry.word() && is_right();
}

bool LargeBlocks::waits_behind(const Span& span) const noexcept {
    if (span.end_page() >= heap_.space().map().page_count()) return false;
    const PageEntry entry = heap_.space().map().at(span.end_page());
    if (entry.kind() != PageKind::large_cached || entry.pool_number() != heap_.pool_number())
        return false;
    const AddressSpace& space = heap_.space();
    return space.shard_of(span.first_page) == space.shard_of(span.end_page());
}

Span* LargeBlocks::move(Span& span, std::size_t bytes, SlowPath& path) noexcept {
    if (span.bytes() < min_moved_bytes) return nullptr;
    return heap_.move(span, pages_of(bytes), path);
}

std::size_t LargeBlocks::empty_cache_before(std::uint32_t period, Changes& changes) noexcept {
    std::size_t bytes = 0;
    cache_.empty(period, [&](Span& span) {
        bytes += span.bytes();
        heap_.free(span, changes);
    });
    return bytes;
}

PageRequest LargeBlocks::request_for(PageCount pages, std::size_t alignment) const noexcept {
    const std::size_t bytes = pages * page_bytes;
    return {.pages = pages,
            .alignment = static_cast<PageCount>(std::max(alignment, page_bytes) / page_bytes),
            .huge = bytes >= platform::huge_page_bytes &&
                    heap_.options().huge_pages >= HugePages::automatic};
}

}  // namespace tensorpool::pages
