// Blocks that a server hands out in place of the global pool, and blocks of the pool whose frees a
// server notes.

#include <mutex>

#include "base/atomics.hpp"
#include "base/never_destroyed.hpp"
#include "pages/served_memory.hpp"
#include "platform/tools/memory_tools.hpp"
#include "pool/block_server.hpp"
#include "pool/pool.hpp"
#include "statistics/recorder_hooks.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

using pages::PageEntry;
using pages::PageKind;
using pages::Span;

constinit base::NeverDestroyed<base::Registry<BlockServer>> the_servers;

}  // namespace

constinit std::atomic<std::size_t> idle_plan_count = 0;

constinit thread_local Serving serving TENSORPOOL_INITIAL_EXEC;

base::Registry<BlockServer>& block_servers() noexcept {
    return the_servers.get();
}

void* Pool::allocate_served(std::size_t bytes, std::size_t alignment, pages::SlowPath& path,
                            FirstTouch first_touch) noexcept {
    BlockServer& server = *serving.server;
    const ServingThread paused({});
    return server.serve(*this, bytes, alignment, path, first_touch);
}

// If another thread frees the block at the same time, or frees a block that is not in use, the free
// that follows finds the misuse.
bool Pool::free_served(void* p) noexcept {
    const PageEntry entry = heap_.space().map().at(p);
    if (entry.kind() == PageKind::served) return may_serve(entry) && entry.served()->deallocate(p);
    if (large_.find_noted(p) == nullptr) return false;
    const std::lock_guard guard(block_servers());
    // The server may have been destroyed since.
    Span* const span = large_.find_noted(p);
    if (span == nullptr) return false;
    bool is_noted = false;
    block_servers().for_each(
        [&](BlockServer& server) { is_noted = is_noted || server.note_free(p); });
    large_.set_noted(*span, false);
    return false;
}

void Pool::note_free_of(void* p) noexcept {
    if (Span* const span = large_span_of(p)) large_.set_noted(*span, true);
}

void Pool::forget_free_of(void* p) noexcept {
    if (Span* const span = large_.find_noted(p)) large_.set_noted(*span, false);
}

// The lock keeps the owner, whose memory may be taken back as soon as its last block is freed.
Pool::Finding Pool::find_served(const void* p) noexcept {
    const std::lock_guard guard(heap_.space());
    const PageEntry entry = heap_.space().map().at(p);
    if (entry.kind() != PageKind::served || !may_serve(entry)) return {};
    const auto [begin, bytes] = entry.served()->find(p);
    if (begin == nullptr) return {.what = Finding::What::freed, .block = const_cast<void*>(p)};
    return {.what = begin == p ? Finding::What::block : Finding::What::interior,
            .block = const_cast<void*>(begin),
            .usable = bytes,
            .requested = bytes};
}

// Free memory is used without growth if it has a run that is long enough once all of it has joined.
Span* Pool::lend(std::size_t bytes, std::size_t alignment, const pages::ServedMemory& borrower,
                 pages::SlowPath& path) noexcept {
    gather(path);
    path.may_grow = false;
    Span* span = large_.allocate_tightly(bytes, alignment, path);
    path.may_grow = true;
    if (span == nullptr) {
        heap_.give_back(SIZE_MAX, path);
        span = large_.allocate_tightly(bytes, alignment, path);
    }
    if (span != nullptr) {
        record_->totals.capacity_bytes.fetch_sub(span->bytes(), std::memory_order_relaxed);
        // Plans hand out blocks inline, so memory tools do not see them one by one.
        platform::mark_open(large_.address_of(*span), span->bytes());
        heap_.space().map().set_all({span->first_page, span->pages},
                                    PageEntry(&borrower, heap_.pool_number()));
    }
    report(path);
    return span;
}

void Pool::give_back_free() noexcept {
    pages::Changes changes;
    heap_.give_back(SIZE_MAX, changes);
    report(changes);
}

void Pool::take_back(Span& span) noexcept {
    {
        // Excludes look-ups of any pointer (find_served).
        const std::lock_guard guard(heap_.space());
        heap_.space().map().set_all({span.first_page, span.pages}, PageEntry());
    }
    statistics::PoolTotals& totals = record_->totals;
    const std::size_t bytes = span.bytes();
    if (is_marked()) platform::mark_closed(large_.address_of(span), bytes);
    const std::size_t before = totals.capacity_bytes.fetch_add(bytes, std::memory_order_relaxed);
    base::raise_to(totals.peak_capacity_bytes, before + bytes);
    pages::Changes changes;
    heap_.free(span, changes);
    const std::size_t limit = max_capacity();
    if (limit != 0 && capacity() > limit) heap_.give_back(capacity() - limit, changes);
    report(changes);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
