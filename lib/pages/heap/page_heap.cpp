#include "pages/heap/page_heap.hpp"

#include <algorithm>
#include <new>

#include "base/alignment.hpp"
#include "base/block_sizes.hpp"
#include "pages/large_sizes.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

PageHeap::PageHeap(AddressSpace& space, limits::CommitBudget& process, unsigned pool_number,
                   const HeapOptions& options, statistics::PoolTotals& totals) noexcept
    : common_{space, limits::CommitAccount(process, options.budget), pool_number, options, totals},
      shards_(common_, 0U) {
    common_.retention.begin(options.clock_ns(),
                            std::uint64_t{options.retain.milliseconds} * 1'000'000, 0);
}

PageHeap::~PageHeap() {
    common_.account.give_back(capacity());
    common_.space.take_back(common_.number, common_.loans);
    common_.space.take_back(common_.number, common_.low_loans);
    shards_.for_each_other(shards_.first(), discard);
    if (HeapShard* const marked = marked_.load(std::memory_order_relaxed)) discard(*marked);
}

HeapShard& PageHeap::own_shard() noexcept {
    return shards_.own([this](unsigned number) noexcept { return make_shard(number); }, discard);
}

HeapShard* PageHeap::make_shard(unsigned number) noexcept {
    void* const memory = platform::map(sizeof(HeapShard), platform::page_bytes());
    if (memory == nullptr) return nullptr;
    common_.totals.record_bytes.fetch_add(sizeof(HeapShard), std::memory_order_relaxed);
    common_.is_divided.store(true, std::memory_order_relaxed);
    return new (memory) HeapShard(common_, number);
}

// Returns nullptr if memory is short.
HeapShard* PageHeap::marked_shard() noexcept {
    HeapShard* marked = marked_.load(std::memory_order_acquire);
    if (marked != nullptr) return marked;
    const std::lock_guard guard(shards_.first());
    marked = marked_.load(std::memory_order_relaxed);
    if (marked == nullptr) {
        marked = make_shard(AddressSpace::marked_shard);
        marked_.store(marked, std::memory_order_release);
    }
    return marked;
}

void PageHeap::discard(HeapShard& shard) noexcept {
    shard.~HeapShard();
    platform::unmap(&shard, sizeof(HeapShard));
}

// A shard borrows its addresses itself, in whole granules.
HeapShard& PageHeap::shard_of(const Span& span) noexcept {
    const unsigned number = common_.space.shard_of(span.first_page);
    return number == AddressSpace::marked_shard ? *marked_.load(std::memory_order_acquire)
                                                : *shards_.find(number);
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
    return grow_and_take(own_shard(), request, path);
}

// If the low addresses are used up, other ones serve as well: inline frees are then hidden
// (`blocks::note_addresses`).
Span* PageHeap::take_marked(const PageRequest& request, SlowPath& path) noexcept {
    const bool may_grow = request.may_grow && path.may_grow;
    if (HeapShard* const marked = marked_shard()) {
        Span* span = marked->take_free(request, path);
        if (span != nullptr || !may_grow) return span;
        span = grow_and_take(*marked, request, path);
        if (span != nullptr || path.shortage != 0) return span;
    }
    Span* const span = take_free(request, path);
    return span != nullptr || !may_grow ? span : grow_and_take(own_shard(), request, path);
}

Span* PageHeap::take_free(const PageRequest& request, SlowPath& path) noexcept {
    HeapShard& own = own_shard();
    Span* span = own.take_free(request, path);
    if (span != nullptr) return span;
    shards_.for_each_other(own, [&](HeapShard& other) {
        if (span == nullptr) span = other.take_free(request, path);
    });
    return span;
}

// Free extents that are too small for the request count against a limit. They are given back until
// there is enough room or nothing is left. One of them may be an extent that the growth relied on,
// so the request is tried again each time.
Span* PageHeap::grow_and_take(HeapShard& own, const PageRequest& request, SlowPath& path) noexcept {
    const std::size_t lent = lent_bytes();
    do {
        const std::lock_guard guard(common_.growth);
        path.shortage = 0;
        if (Span* const span = take_by_growth(own, request, path)) return span;
    } while (path.shortage != 0 && give_back(path.shortage, Floor::ignored, path) != 0);
    if (!path.refusal.knows_free) report_free(path.refusal);  // it could not be given back
    if (lent_bytes() > lent) lend_back();
    return nullptr;
}

// If the thread's shard finds no addresses, another one may have some.
Span* PageHeap::take_by_growth(HeapShard& own, const PageRequest& request,
                               SlowPath& path) noexcept {
    Span* span = own.take(request, path);
    if (&own != marked_.load(std::memory_order_relaxed)) {
        shards_.for_each_other(own, [&](HeapShard& other) {
            if (span == nullptr && path.shortage == 0) span = other.take(request, path);
        });
    }
    if (span == nullptr && (path.shortage == 0 || common_.free_bytes() == 0)) {
        report_free(path.refusal);
    }
    return span;
}

void PageHeap::free(Span& span, Changes& changes, Zeroed zeroed) noexcept {
    shard_of(span).free(span, zeroed);
    const std::size_t kept = kept_bytes();
    if (kept > options().retain.bytes) give_back(kept - options().retain.bytes, changes);
}

// All bytes that are free and committed.
std::size_t PageHeap::kept_bytes() const noexcept {
    return common_.free_bytes() +
           common_.totals.large_cached_bytes.load(std::memory_order_relaxed) +
           kept_elsewhere_.load(std::memory_order_relaxed);
}

void PageHeap::end_marks() noexcept {
    end_marks(common_.low_loans);
    end_marks(common_.loans);
}

// The first entry of each span and extent refers to its record.
void PageHeap::end_marks(PageRun lent) noexcept {
    const PageMap& map = common_.space.map();
    for (PageNumber page = lent.first; page < lent.first + lent.count;) {
        const void* const address = map.address_of(page);
        if (page % granule_pages == 0 && !common_.space.is_lent_to(common_.number, address)) {
            page += granule_pages;
            continue;
        }
        const PageEntry entry = map.at(page);
        if (entry.empty() || !entry.has_span() || entry.pool_number() != common_.number) {
            ++page;
            continue;
        }
        Span& span = *entry.span();
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
        page = std::max(span.end_page(), page + 1);
    }
}

void PageHeap::report_free(Refusal& refusal) noexcept {
    refusal.knows_free = true;
    refusal.free_pages = 0;
    refusal.largest_free = 0;
    for_each_shard([&](HeapShard& shard) { shard.report_free(refusal); });
}

bool PageHeap::extend(Span& span, PageCount pages, SlowPath& path) noexcept {
    HeapShard& shard = shard_of(span);
    if (shard.extend(span, pages, HeapShard::MayCommit::no, path)) return true;
    const std::lock_guard guard(common_.growth);
    return shard.extend(span, pages, HeapShard::MayCommit::yes, path);
}

// If free committed memory can hold the block, the caller copies it there instead.
Span* PageHeap::move(Span& span, PageCount pages, SlowPath& path) noexcept {
    bool has_free = false;
    shards_.for_each([&](HeapShard& shard) { has_free = has_free || shard.has_free(pages); });
    if (has_free) return nullptr;
    const std::size_t lent = lent_bytes();
    Span* left = nullptr;
    {
        const std::lock_guard guard(common_.growth);
        left = shard_of(span).move(span, pages, path);
    }
    if (left == nullptr && lent_bytes() > lent) lend_back();
    return left;
}

void PageHeap::take_left(Span& left) noexcept {
    shard_of(left).take_left(left);
}

bool PageHeap::reserve(std::size_t bytes, SlowPath& path) noexcept {
    const std::size_t lent = lent_bytes();
    if (!commit_up_to(bytes, path)) {
        // Another shard may hold the addresses that are missing.
        const bool may_retry = path.shortage == 0 && shards_.has_others();
        if (may_retry || lent_bytes() > lent) lend_back();
        if (!may_retry || !commit_up_to(bytes, path)) return false;
    }
    const Touching touching(common_);
    for_each_shard([](HeapShard& shard) { shard.touch_free(); });
    return true;
}

bool PageHeap::commit_up_to(std::size_t bytes, SlowPath& path) noexcept {
    HeapShard& own = own_shard();
    const std::lock_guard guard(common_.growth);
    path.shortage = 0;
    // A limit that is not a multiple of the page size is reached up to whole pages.
    const std::size_t limit = common_.max_capacity;
    if (bytes <= limit) bytes = std::min(bytes, base::align_down(limit, page_bytes));
    const std::size_t before = capacity();
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
    common_.set_floor(std::max(common_.floor, base::align_up(bytes, page_bytes)));
    return true;
}

void PageHeap::limit_capacity(std::size_t bytes) noexcept {
    common_.max_capacity = bytes;
    if (bytes != 0) common_.set_floor(std::min(common_.floor, bytes));
}

void PageHeap::lock() noexcept {
    common_.growth.lock();
    for_each_shard([](HeapShard& shard) { shard.lock(); });
}

void PageHeap::unlock() noexcept {
    // The first shard last: while it is locked, no other shard is made.
    if (HeapShard* const marked = marked_.load(std::memory_order_relaxed)) marked->unlock();
    shards_.for_each_other(shards_.first(), [](HeapShard& shard) { shard.unlock(); });
    shards_.first().unlock();
    common_.growth.unlock();
}

}  // namespace tensorpool::pages
