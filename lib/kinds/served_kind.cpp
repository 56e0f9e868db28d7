#include "kinds/kinds.hpp"

#include "kinds/free_memory.hpp"
#include "kinds/reports.hpp"

namespace tensorpool::kinds {
namespace {

constinit thread_local bool is_quiet TENSORPOOL_INITIAL_EXEC = false;

// Whether blocks of this memory of a plan may be freed through this pool.
bool may_serve(const PoolParts& pool, PageEntry entry) noexcept {
    return entry.kind() == pages::PageKind::served && pool.is_global() && pool.owns(entry);
}

}  // namespace

constinit std::atomic<std::size_t> idle_plan_count = 0;

constinit thread_local Serving serving TENSORPOOL_INITIAL_EXEC;

QuietEvents::QuietEvents() noexcept : before_(std::exchange(is_quiet, true)) {}
QuietEvents::~QuietEvents() {
    is_quiet = before_;
}
bool QuietEvents::exist() noexcept {
    return is_quiet;
}

// No callback runs under the lock: it may free blocks, which takes the lock.
bool give_back_idle_plans(std::size_t wanted) noexcept {
    if (idle_plan_count.load(std::memory_order_relaxed) == 0) return true;
    // A caller may be inside a request for memory that another layer makes under its lock.
    const std::unique_lock guard(block_servers(), std::try_to_lock);
    if (!guard) return false;
    const QuietEvents quiet;
    block_servers().for_each([&](BlockServer& server) { server.give_back_idle(wanted); });
    return true;
}

bool takes_lent(const PoolParts& pool, const Request& request) noexcept {
    return request.bytes > serving.max_unserved_bytes && pool.is_global();
}

void* allocate_lent(PoolParts&, const Request& request, SlowPath& path) noexcept {
    BlockServer& server = *serving.server;
    const ServingThread paused({});
    return server.serve(request, path);
}

bool free_served(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
                 Changes&) noexcept {
    if (!may_serve(pool, entry) || !entry.served()->deallocate(p)) report_free(pool, p, stated);
    return false;
}

// The lock keeps the owner, whose memory may be taken back as soon as its last block is freed.
Found find_served(PoolParts& pool, const void* p, PageEntry) noexcept {
    const std::lock_guard guard(pool.heap.space());
    const PageEntry entry = pool.entry(p);
    if (!may_serve(pool, entry)) return {};
    const auto [begin, bytes] = entry.served()->find(p);
    if (begin == nullptr) return {.what = Found::What::freed, .block = const_cast<void*>(p)};
    return {.what = begin == p ? Found::What::block : Found::What::interior,
            .block = const_cast<void*>(begin),
            .usable = bytes,
            .requested = bytes};
}

// A block of a plan has no record of the requested bytes.
void* resize_served(PoolParts&, void* p, const Found& found, std::size_t bytes) noexcept {
    return shrinks_in_place(found, bytes) ? p : nullptr;
}

std::size_t recorded_bytes_of_served(const void*, PageEntry) noexcept {
    return 0;
}

bool note_free_of(PoolParts& pool, void* p) noexcept {
    Span* const span = pool.large.find_in_use(p);
    if (span != nullptr) pool.large.set_noted(*span, true);
    return span != nullptr;
}

void forget_free_of(PoolParts& pool, void* p) noexcept {
    if (Span* const span = pool.large.find_noted(p)) pool.large.set_noted(*span, false);
}

// If another thread frees the block at the same time, or frees a block that is not in use, the free
// that follows finds the misuse.
void note_free(PoolParts& pool, void* p) noexcept {
    const std::lock_guard guard(block_servers());
    // The server may have been destroyed since.
    Span* const span = pool.large.find_noted(p);
    if (span == nullptr) return;
    bool is_noted = false;
    block_servers().for_each(
        [&](BlockServer& server) { is_noted = is_noted || server.note_free(p); });
    pool.large.set_noted(*span, false);
}

// Free memory is used without growth if it has a run that is long enough once all of it has joined.
Span* lend(PoolParts& pool, std::size_t bytes, std::size_t alignment,
           const pages::ServedMemory& borrower, SlowPath& path) noexcept {
    empty_caches(pool, blocks::BucketDepot::Magazines::keep, path);
    path.may_grow = false;
    Span* span = pool.large.allocate_tightly(bytes, alignment, path);
    path.may_grow = true;
    if (span == nullptr) {
        pool.heap.give_back(SIZE_MAX, path);
        span = pool.large.allocate_tightly(bytes, alignment, path);
    }
    if (span == nullptr) return nullptr;
    pool.totals().capacity_bytes.fetch_sub(span->bytes(), std::memory_order_relaxed);
    // Plans hand out blocks inline, so memory tools do not see them one by one.
    platform::mark_open(pool.large.address_of(*span), span->bytes());
    pool.heap.space().map().set_all({span->first_page, span->pages},
                                    PageEntry(&borrower, pool.number()));
    return span;
}

void take_back(PoolParts& pool, Span& span, Changes& changes) noexcept {
    {
        // Excludes look-ups of any pointer (`find`).
        const std::lock_guard guard(pool.heap.space());
        pool.heap.space().map().set_all({span.first_page, span.pages}, PageEntry());
    }
    statistics::PoolTotals& totals = pool.totals();
    const std::size_t bytes = span.bytes();
    if (pool.is_shown_to_tool()) platform::mark_closed(pool.large.address_of(span), bytes);
    const std::size_t before = totals.capacity_bytes.fetch_add(bytes, std::memory_order_relaxed);
    base::raise_to(totals.peak_capacity_bytes, before + bytes);
    pool.heap.free(span, changes);
    const std::size_t limit = pool.record->limit_bytes.load(std::memory_order_relaxed);
    const std::size_t capacity = pool.heap.capacity().bytes();
    if (limit != 0 && capacity > limit) pool.heap.give_back(capacity - limit, changes);
}

}  // namespace tensorpool::kinds
