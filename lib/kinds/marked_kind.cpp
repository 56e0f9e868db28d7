// Marked blocks (base/block_mark.hpp): those that a BudgetScope charges to its budget, and those
// that the heap profile sampled.

#include "blocks/marked_set.hpp"
#include "events/recorder_hooks.hpp"
#include "kinds/free_memory.hpp"
#include "kinds/reports.hpp"
#include "kinds/watcher.hpp"

namespace tensorpool::kinds {
namespace {

using base::BlockMark;
using blocks::Bucket;
using blocks::BucketSet;
using blocks::BucketTraits;
using blocks::Cache;
using blocks::CountAs;
using blocks::thread_registry;

bool charge_one(std::size_t bytes, SlowPath& path) noexcept {
    if (limits::scope_budget->charge(bytes, bytes, bytes, path.budget) != 0) return true;
    path.refusal = path.budget.refusal();
    return false;
}

// For threads without a cache.
void* allocate_charged_direct(PoolParts& pool, unsigned bucket, std::size_t bytes,
                              SlowPath& path) noexcept {
    if (!charge_one(bucket_bytes(bucket), path)) return nullptr;
    BudgetNode& budget = *limits::scope_budget;
    void* const block = take_marked(pool, bucket, bytes, CountAs::miss, path);
    if (block == nullptr) {
        budget.refund(bucket_bytes(bucket));
        return nullptr;
    }
    const BucketTraits& central = (*pool.buckets.shared().marked)[bucket].traits;
    mark_of(central, block).store(&budget, std::memory_order_relaxed);
    if (pool.is_checked()) begin_use(central, block, bytes);
    return block;
}

// Inline paths of the thread see its cache of the marked set from then on, so most calls do not
// come here.
void* allocate_charged_block(PoolParts& pool, unsigned bucket, const Request& request,
                             SlowPath& path) noexcept {
    const std::size_t bytes = request.bytes;
    Cache* const cache = blocks::attach_marked(pool.buckets);
    if (cache == nullptr) return allocate_charged_direct(pool, bucket, bytes, path);
    pool.has_marks.store(true, std::memory_order_relaxed);
    Looked looked;
    if (is_look_due(*cache, bytes)) looked = look_at(pool, *cache, request);
    void* block = cache->pop(bucket, bytes);
    if (block == nullptr) {
        if (cache->room().is_time_to_look()) keep_to_retention(pool, path);
        block = cache->pop_slow(bucket, bytes, path);
    }
    if (block == nullptr) {
        if (looked.marks) put_back(*cache, looked);
        return nullptr;
    }
    const BucketTraits& central = cache->set()[bucket].traits;
    if (looked.marks) [[unlikely]]
        mark_watched(pool, mark_of(central, block), block, request, looked);
    if (pool.is_checked()) begin_use(central, block, bytes);
    return block;
}

// Returns the budget that the block in use at `p` is charged to by a scope, or nullptr.
BlockMark* charge_of(PoolParts& pool, const void* p) noexcept {
    const PageEntry entry = pool.entry(p);
    BlockMark* mark = nullptr;
    if (!pool.owns(entry)) return nullptr;
    if (entry.is_marked()) {
        const Bucket& bucket = (*pool.buckets.shared().marked)[entry.span()->marked_bucket()];
        const auto* const word = mark_of(bucket.traits, p, entry);
        if (word != nullptr) mark = word->load(std::memory_order_relaxed);
    } else if (entry.is_large_in_use()) {
        mark = entry.span()->mark();
    }
    return mark == nullptr ? nullptr : mark->charge();
}

}  // namespace

void* take_marked(PoolParts& pool, unsigned bucket, std::size_t bytes, CountAs count_as,
                  SlowPath& path) noexcept {
    BucketSet* const set = thread_registry().marked_set(pool.buckets);
    if (set == nullptr) {
        path.refusal = pages::no_records();
        return nullptr;
    }
    void* const block = allocate_direct(*set, bucket, bytes, path, count_as);
    if (block == nullptr) return nullptr;
    pool.has_marks.store(true, std::memory_order_relaxed);
    blocks::note_addresses(*set, &block, 1);
    return block;
}

void mark_large(PoolParts& pool, Span& span, BlockMark& mark) noexcept {
    pool.has_marks.store(true, std::memory_order_relaxed);
    span.set_mark(mark);
}

bool takes_charged(const PoolParts& pool, const Request&) noexcept {
    return pool.is_in_scope();
}

void* allocate_charged(PoolParts& pool, const Request& request, SlowPath& path) noexcept {
    if (!is_possible_size(request, path)) return nullptr;
    const unsigned bucket = bucket_for(request.bytes, request.alignment);
    if (bucket < bucket_count) return allocate_charged_block(pool, bucket, request, path);
    return watch_pages(pool, request, path, allocate_charged_pages);
}

void* allocate_charged_pages(PoolParts& pool, Cache* cache, const Request& request,
                             SlowPath& path) noexcept {
    BudgetNode& budget = *limits::scope_budget;
    const std::size_t needed = pages::LargeBlocks::pages_of(request.bytes) * pages::page_bytes;
    if (!charge_one(needed, path)) return nullptr;
    void* const block = allocate_whole_pages(pool, cache, request, path);
    if (block == nullptr) {
        budget.refund(needed);
        return nullptr;
    }
    // A block that was free may be larger.
    Span& span = *pool.entry(block).span();
    if (span.bytes() == needed || charge_one(span.bytes() - needed, path)) {
        mark_large(pool, span, budget);
        return block;
    }
    (void)free_large(pool, span, path);
    budget.refund(needed);
    return nullptr;
}

bool free_marked(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
                 Changes& changes) noexcept {
    BucketSet* const set = pool.buckets.shared().marked.load(std::memory_order_acquire);
    const unsigned bucket = set == nullptr ? bucket_count : entry.span()->marked_bucket();
    pages::BlockStates::Mark* const word =
        bucket < bucket_count ? mark_of((*set)[bucket].traits, p, entry) : nullptr;
    bool ends = word != nullptr;
    if (pool.is_checked() && ends) {
        ends = stated.agrees(bucket) &&
               end_use((*set)[bucket].traits, p, entry, max_requested(pool, stated));
    }
    const Stated known{bucket, {.bytes = ends ? bucket_bytes(bucket) : 0}};
    if (ends && pool.is_shown_to_tool() && !check_and_mark_freed(pool, p, known)) [[unlikely]]
        return false;
    BlockMark* const mark = ends ? word->load(std::memory_order_relaxed) : nullptr;
    if (mark == nullptr) [[unlikely]] {
        report_free(pool, p, stated);
        return false;
    }
    Cache* const cache = blocks::own_cache(*set);
    if (cache != nullptr && cache->push_exposed(bucket, p, mark)) return false;
    const FreeCost cost(mark->watcher);
    word->store(nullptr, std::memory_order_relaxed);
    mark->on_free(bucket_bytes(bucket));
    if (cache != nullptr) {
        cache->push_slow(bucket, p, changes);
    } else {
        deallocate_direct(*set, bucket, p, changes);
    }
    return true;
}

bool free_exposed(PoolParts& pool, void* p) noexcept {
    if (!pool.is_in_scope() || pool.is_checked() || pool.is_shown_to_tool() ||
        events::is_answer_due() || events::is_recording())
        return false;
    const PageEntry entry = pool.entry(p);
    BucketSet* const set = pool.buckets.shared().marked.load(std::memory_order_acquire);
    if (set == nullptr || !pool.owns(entry) || !entry.is_marked()) return false;
    const unsigned bucket = entry.span()->marked_bucket();
    Cache* const cache = blocks::own_cache(*set);
    if (cache == nullptr || bucket >= bucket_count) return false;
    const pages::BlockStates::Mark* const word = mark_of((*set)[bucket].traits, p, entry);
    const BlockMark* const mark = word == nullptr ? nullptr : word->load(std::memory_order_relaxed);
    return mark != nullptr && cache->push_exposed(bucket, p, mark);
}

// The bucket of a span that is being set up is not known yet, so it is not read.
Found find_marked(PoolParts& pool, const void* p, PageEntry) noexcept {
    BucketSet* const set = pool.buckets.shared().marked.load(std::memory_order_acquire);
    Found found;
    if (set == nullptr) return found;
    for (unsigned bucket = 0; bucket != bucket_count; ++bucket) {
        if (found.what == Found::What::foreign) found = find_in(pool, *set, bucket, p);
    }
    return found;
}

void* resize_marked(PoolParts& pool, void* p, const Found& found, std::size_t bytes) noexcept {
    Bucket& bucket = (*pool.buckets.shared().marked)[pool.entry(p).span()->marked_bucket()];
    return resize_in_bucket(pool, bucket, p, found, bytes);
}

std::size_t recorded_bytes_of_marked(const void*, PageEntry entry) noexcept {
    return base::block_bytes(0, entry.span()->marked_bucket());
}

std::uint64_t charged_budget(const PoolParts& pool) noexcept {
    const BudgetNode* const own = pool.heap.options().budget;
    const BudgetNode* const budget = own != nullptr ? own : limits::scope_budget;
    return budget == nullptr ? 0 : budget->statistics().id;
}

bool is_charged(PoolParts& pool, const void* p) noexcept {
    return charge_of(pool, p) != nullptr;
}

bool must_charge(PoolParts& pool, const void* p, std::size_t bytes) noexcept {
    if (!pool.is_in_scope()) return false;
    // No scope charges what a plan serves.
    const bool is_served = bytes > serving.max_unserved_bytes &&
                           pages::address_space().map().at(p).kind() == pages::PageKind::served;
    return !is_served && charge_of(pool, p) != limits::scope_budget;
}

}  // namespace tensorpool::kinds
