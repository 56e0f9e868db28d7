#include "pages/heap/end_marks.hpp"

#include <algorithm>

#include "base/block_sizes.hpp"
#include "pages/span.hpp"

namespace tensorpool::pages {
namespace {

void end_marks_of(Span& span, PageEntry entry) noexcept {
    if (entry.is_marked()) {
        BlockStates& states = *span.states.load(std::memory_order_relaxed);
        for (unsigned index = 0; index != span.blocks; ++index) {
            base::BlockMark* const mark =
                states.marks[index].exchange(nullptr, std::memory_order_relaxed);
            if (mark != nullptr) mark->on_free(base::block_bytes(0, span.marked_bucket()));
        }
    } else if (entry.is_large_in_use() && span.is_marked) {
        span.take_mark().on_free(span.bytes());
    }
}

}  // namespace

// The first entry of each span and extent refers to its record.
void end_marks(const AddressSpace& space, unsigned pool_number, PageRun lent) noexcept {
    const PageMap& map = space.map();
    for (PageNumber page = lent.first; page < lent.first + lent.count;) {
        if (page % granule_pages == 0 && !space.is_lent_to(pool_number, map.address_of(page))) {
            page += granule_pages;
            continue;
        }
        const PageEntry entry = map.at(page);
        if (entry.empty() || !entry.has_span() || entry.pool_number() != pool_number) {
            ++page;
            continue;
        }
        Span& span = *entry.span();
        end_marks_of(span, entry);
        page = std::max(span.end_page(), page + 1);
    }
}

}  // namespace tensorpool::pages
