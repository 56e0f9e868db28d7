#include "pages/heap/page_heap.hpp"

#include <thread>

#include "base/block_sizes.hpp"
#include "pages/large_sizes.hpp"

namespace tensorpool::pages {
namespace {

// The processors of a group have adjacent numbers, so they usually share a cache.
unsigned shard_of_processor() noexcept {
    return platform::current_processor() / processors_per_shard %
           sharding.count.load(std::memory_order_relaxed);
}

}  // namespace

constinit Sharding sharding{.count = 0, .current = shard_of_processor};

unsigned shards_for(unsigned processors) noexcept {
    const unsigned groups = (processors + processors_per_shard - 1) / processors_per_shard;
    return std::clamp(groups, 1U, max_shards);
}

// Threads that get here at the same time find the same number.
unsigned determine_shard() noexcept {
    sharding.count.store(shards_for(std::thread::hardware_concurrency()),
                         std::memory_order_relaxed);
    return current_shard();
}

HeapShards::~HeapShards() {
    shards_.for_each_other(shards_.first(), discard);
    if (HeapShard* const marked = marked_.load(std::memory_order_relaxed)) discard(*marked);
}

HeapShard* HeapShards::marked() noexcept {
    HeapShard* marked = marked_.load(std::memory_order_acquire);
    if (marked != nullptr) return marked;
    const std::lock_guard guard(shards_.first());
    marked = marked_.load(std::memory_order_relaxed);
    if (marked == nullptr) {
        marked = make(AddressSpace::marked_shard);
        marked_.store(marked, std::memory_order_release);
    }
    return marked;
}

// A shard borrows its addresses itself, in whole granules.
HeapShard& HeapShards::of(const Span& span) noexcept {
    const unsigned number = common_.space.shard_of(span.first_page);
    return number == AddressSpace::marked_shard ? *marked_.load(std::memory_order_acquire)
                                                : *shards_.find(number);
}

HeapShard* HeapShards::make(unsigned number) noexcept {
    void* const memory = platform::map(sizeof(HeapShard), platform::page_bytes());
    if (memory == nullptr) return nullptr;
    common_.totals.record_bytes.fetch_add(sizeof(HeapShard), std::memory_order_relaxed);
    common_.kept.divide();
    return new (memory) HeapShard(common_, number);
}

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

// The first entry of each span and extent refers to its record.
void end_marks_in(const AddressSpace& space, unsigned pool_number, PageRun lent) noexcept {
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

}  // namespace

PageHeap::PageHeap(AddressSpace& space, limits::CommitBudget& process, unsigned pool_number,
                   const HeapOptions& options, statistics::PoolTotals& totals) noexcept
    : common_(space, process, pool_number, options, totals), shards_(common_) {}

// Before the records of spans end: entries of the page map refer to them until then.
PageHeap::~PageHeap() {
    common_.loans.give_back_all();
}

Span* PageHeap::allocate(const PageRequest& request, SlowPath& path) noexcept {
    if (request.alignment > granule_pages && request.alignment > common_.space.max_alignment()) {
        path.refusal = {"the largest alignment", common_.space.max_alignment() * page_bytes};
        path.refusal.advice = "an alignment up to that limit is supported";
        return nullptr;
    }
    if (request.kind == PageKind::marked) return take_marked(request, path);
    Span* const span = take_free(request, path);
    if (span != nullptr || !request.may_grow || !path.may_grow) return span;
    return grow_and_take(shards_.own(), request, path);
}

// If the low addresses are used up, other ones serve as well: inline frees are then hidden
// (`blocks::note_addresses`).
Span* PageHeap::take_marked(const PageRequest& request, SlowPath& path) noexcept {
    const bool may_grow = request.may_grow && path.may_grow;
    if (HeapShard* const marked = shards_.marked()) {
        Span* span = marked->take_free(request, path);
        if (span != nullptr || !may_grow) return span;
        span = grow_and_take(*marked, request, path);
        if (span != nullptr || path.shortage != 0) return span;
    }
    Span* const span = take_free(request, path);
    return span != nullptr || !may_grow ? span : grow_and_take(shards_.own(), request, path);
}

Span* PageHeap::take_free(const PageRequest& request, SlowPath& path) noexcept {
    HeapShard& own = shards_.own();
    Span* span = own.take_free(request, path);
    if (span != nullptr) return span;
    shards_.ordinary().for_each_other(own, [&](HeapShard& other) {
        if (span == nullptr) span = other.take_free(request, path);
    });
    return span;
}

// Free extents that are too small for the request count against a limit. They are given back until
// there is enough room or nothing is left. One of them may be an extent that the growth relied on,
// so the request is tried again each time.
Span* PageHeap::grow_and_take(HeapShard& own, const PageRequest& request, SlowPath& path) noexcept {
    const std::size_t lent = common_.loans.bytes();
    do {
        const std::lock_guard guard(common_.growth);
        path.shortage = 0;
        if (Span* const span = take_by_growth(own, request, path)) return span;
    } while (path.shortage != 0 && give_back(path.shortage, path, Prepared::given_back) != 0);
    if (!path.refusal.knows_free) shards_.report_free(path.refusal);  // it could not be given back
    if (common_.loans.bytes() > lent) lend_back();
    return nullptr;
}

// If the thread's shard finds no addresses, another one may have some.
Span* PageHeap::take_by_growth(HeapShard& own, const PageRequest& request,
                               SlowPath& path) noexcept {
    Span* span = own.take(request, path);
    if (!own.is_marked()) {
        shards_.ordinary().for_each_other(own, [&](HeapShard& other) {
            if (span == nullptr && path.shortage == 0) span = other.take(request, path);
        });
    }
    if (span == nullptr && (path.shortage == 0 || kept().free_bytes() == 0))
        shards_.report_free(path.refusal);
    return span;
}

void PageHeap::end_marks() noexcept {
    end_marks_in(common_.space, common_.number, common_.loans.low());
    end_marks_in(common_.space, common_.number, common_.loans.ordinary());
}

// If free committed memory can hold the block, the caller copies it there instead.
Span* PageHeap::move(Span& span, PageCount pages, SlowPath& path) noexcept {
    bool has_free = false;
    shards_.ordinary().for_each(
        [&](HeapShard& shard) { has_free = has_free || shard.has_free(pages); });
    if (has_free) return nullptr;
    const std::size_t lent = common_.loans.bytes();
    Span* left = nullptr;
    {
        const std::lock_guard guard(common_.growth);
        left = shards_.of(span).move(span, pages, path);
    }
    if (left == nullptr && common_.loans.bytes() > lent) lend_back();
    return left;
}

bool PageHeap::reserve(std::size_t bytes, SlowPath& path) noexcept {
    const std::size_t lent = common_.loans.bytes();
    if (!commit_up_to(bytes, path)) {
        // Another shard may hold the addresses that are missing.
        const bool may_retry = path.shortage == 0 && shards_.ordinary().has_others();
        if (may_retry || common_.loans.bytes() > lent) lend_back();
        if (!may_retry || !commit_up_to(bytes, path)) return false;
    }
    const Touching touching(common_);
    shards_.for_each([](HeapShard& shard) { shard.touch_free(); });
    return true;
}

bool PageHeap::commit_up_to(std::size_t bytes, SlowPath& path) noexcept {
    HeapShard& own = shards_.own();
    const std::lock_guard guard(common_.growth);
    path.shortage = 0;
    // A limit that is not a multiple of the page size is reached up to whole pages.
    const std::size_t limit = capacity().max();
    if (bytes <= limit) bytes = std::min(bytes, base::align_down(limit, page_bytes));
    const std::size_t before = capacity().bytes();
    if (before < bytes) {
        const std::size_t missing = bytes - before;
        if (missing > max_large_bytes) {
            path.refusal = {"address space", max_large_bytes};
            path.refusal.advice = "no pool can reserve more than that at once";
            return false;
        }
        const auto pages = static_cast<PageCount>(base::ceil_divide(missing, page_bytes));
        if (!own.commit_pages(pages, path)) {
            path.refusal.missing = 0;  // freeing blocks does not help: they stay part of capacity
            return false;
        }
    }
    capacity().prepare(base::align_up(bytes, page_bytes));
    return true;
}

void PageHeap::try_huge_page(const SlowPath& path) noexcept {
    const PageRun run = path.untried;
    if (run.count == 0) return;
    const Touching touching(common_);
    // Other threads may have freed the span, and its addresses may have been returned.
    const PageEntry entry = space().map().at(run.first);
    if (!entry.is_bucket() || entry.pool_number() != pool_number()) return;
    common_.fresh.try_huge_page(run);
}

std::size_t PageHeap::trim(Changes& changes) noexcept {
    {
        const std::lock_guard guard(common_.growth);
        capacity().forget_prepared();
    }
    const std::size_t bytes = give_back(SIZE_MAX, changes, Prepared::given_back);
    lend_back();
    return bytes;
}

std::size_t PageHeap::give_back(std::size_t bytes, Changes& changes, Prepared prepared) noexcept {
    std::size_t given = 0;
    shards_.for_each([&](HeapShard& shard) {
        if (bytes == 0) return;
        SpanList leaving;
        std::size_t collected = 0;
        if (prepared == Prepared::given_back) {
            collected = shard.collect(leaving, bytes);
        } else {
            // Both steps under one lock: if two threads give back at once, the second one sees the
            // capacity that the first one left.
            const std::lock_guard guard(common_.growth);
            collected = shard.collect(leaving, std::min(bytes, capacity().above_prepared()));
        }
        bytes -= std::min(bytes, collected);
        given += shard.drop(leaving, changes);
    });
    return given;
}

bool PageHeap::keep_to_retention(Changes& changes) noexcept {
    const std::uint64_t now_ns = options().clock_ns();
    if (!kept().has_period_ended(now_ns)) return false;
    std::size_t unneeded = 0;
    {
        const std::lock_guard guard(common_.growth);
        if (!kept().has_period_ended(now_ns)) return false;  // another thread was first
        unneeded = kept().begin_period(now_ns);
    }
    if (unneeded != 0) give_back(unneeded, changes);
    // If the address space is limited, other code in the process may need the addresses.
    if (platform::available_address_space() != SIZE_MAX) lend_back();
    return true;
}

void PageHeap::lend_back() noexcept {
    shards_.for_each([this](HeapShard& shard) {
        SpanList leaving;
        {
            const std::lock_guard guard(common_.growth);
            if (common_.touching == 0) shard.collect_cold(leaving);
        }
        shard.return_addresses(leaving);
    });
}

}  // namespace tensorpool::pages
