#include "lab/wiped_kind.hpp"

#include <cstring>
#include <mutex>

#include "kinds/kinds.hpp"
#include "kinds/reports.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool::lab {
namespace {

using kinds::Found;
using kinds::PoolParts;
using kinds::Request;
using pages::PageEntry;
using pages::Span;

bool takes(const PoolParts&, const Request& request) noexcept {
    return request.alignment >= WipedKind::alignment;
}

void* allocate(PoolParts& pool, const Request& request, pages::SlowPath& path) noexcept {
    if (!kinds::is_possible_size(request, path)) return nullptr;
    Span* const span = pool.large.allocate_tightly(request.bytes, request.alignment, path);
    if (span == nullptr) return nullptr;
    span->requested_bytes.store(request.bytes, std::memory_order_relaxed);
    pool.heap.space().map().set_all({span->first_page, span->pages},
                                    PageEntry(span, pool.number(), WipedKind::number));
    kinds::count_large_allocation(pool, request.bytes, span->bytes());
    return pool.large.address_of(*span);
}

bool is_wiped(const PoolParts& pool, PageEntry entry) noexcept {
    return entry.kind() == WipedKind::number && pool.owns(entry);
}

bool free(PoolParts& pool, void* p, PageEntry entry, const kinds::Stated& stated,
          pages::Changes& changes) noexcept {
    Span& span = *entry.span();
    if (p != pool.large.address_of(span) || !stated.agrees(detail::bucket_count)) {
        kinds::report_free(pool, p, stated);
        return false;
    }
    std::memset(p, 0, span.requested_bytes.load(std::memory_order_relaxed));
    {
        // Excludes look-ups of any pointer.
        const std::lock_guard guard(pool.heap.space());
        pool.heap.space().map().set_all({span.first_page, span.pages}, PageEntry());
    }
    const std::size_t bytes = span.bytes();
    if (pool.is_shown_to_tool()) platform::mark_freed({p, 0, bytes});
    kinds::count_large_free(pool, bytes, kinds::Held::no);
    pool.heap.free(span, changes);
    return true;
}

Found find(PoolParts& pool, const void* p, PageEntry) noexcept {
    const std::lock_guard guard(pool.heap.space());
    const PageEntry entry = pool.entry(p);
    if (!is_wiped(pool, entry)) return {};
    const Span& span = *entry.span();
    void* const block = pool.large.address_of(span);
    return {.what = block == p ? Found::What::block : Found::What::interior,
            .block = block,
            .usable = span.bytes(),
            .requested = span.requested_bytes.load(std::memory_order_relaxed)};
}

std::size_t recorded_bytes(const void*, PageEntry entry) noexcept {
    return entry.span()->bytes();
}

// The content moves when a block is resized, so that what is left is overwritten.
constexpr kinds::Kind wiped_kind{free, find, kinds::always_moves, recorded_bytes};

// The one registration. It comes before the first pool, which tests make.
[[maybe_unused]] const bool is_added =
    (kinds::add(WipedKind::number, wiped_kind, {takes, allocate}), true);

}  // namespace
}  // namespace tensorpool::lab
