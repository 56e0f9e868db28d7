// Marked blocks (base/block_mark.hpp): those that a BudgetScope charges to its budget, and those
// that the heap profile sampled.

#include <algorithm>

#include "blocks/bucket_states.hpp"
#include "blocks/thread_registry.hpp"
#include "pool/block_server.hpp"
#include "pool/pool.hpp"
#include "statistics/budget/scope_budget.hpp"
#include "statistics/profile/profiled_blocks.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

using base::BlockMark;
using blocks::thread_registry;
using pages::Changes;
using pages::PageEntry;
using pages::SlowPath;

bool charge_one(std::size_t bytes, SlowPath& path) noexcept {
    if (statistics::scope_budget->charge(bytes, bytes, bytes, path.budget) != 0) return true;
    path.refusal = path.budget.refusal();
    return false;
}

}  // namespace

// Inline paths of the thread see its cache of the marked set from then on, so most calls do not
// come here.
void* Pool::allocate_charged(unsigned bucket, std::size_t bytes, std::size_t alignment,
                             SlowPath& path) noexcept {
    blocks::Cache* const cache = thread_registry().attach_marked(buckets_);
    if (cache == nullptr) return allocate_charged_direct(bucket, bytes, path);
    has_marks_.store(true, std::memory_order_relaxed);
    Sampled sampled;
    if (cache->bytes_to_sample < static_cast<std::int64_t>(bytes)) [[unlikely]]
        sampled = sample(*cache, bytes, alignment);
    void* block = cache->pop(bucket, bytes);
    if (block == nullptr) {
        if (cache->is_time_to_look()) keep_to_retention(path);
        block = cache->pop_slow(bucket, bytes, path);
    }
    if (block == nullptr) {
        if (sampled.mean != 0) owe_sample(*cache, bytes, sampled.mean);
        return nullptr;
    }
    blocks::Bucket& central = cache->set()[bucket];
    if (sampled.mean != 0) [[unlikely]]
        profile_marked(*cache, central.mark_of(block), block, bytes, sampled);
    if (checked()) central.begin_use(block, bytes);
    return block;
}

// For threads without a cache.
void* Pool::allocate_charged_direct(unsigned bucket, std::size_t bytes, SlowPath& path) noexcept {
    if (!charge_one(bucket_bytes(bucket), path)) return nullptr;
    BudgetNode& budget = *statistics::scope_budget;
    void* const block = take_marked(bucket, bytes, blocks::BucketSet::CountAs::miss, path);
    if (block == nullptr) {
        budget.cancel(bucket_bytes(bucket));
        return nullptr;
    }
    blocks::Bucket& central = (*buckets_.marked)[bucket];
    central.mark_of(block).store(&budget, std::memory_order_relaxed);
    if (checked()) central.begin_use(block, bytes);
    return block;
}

// Takes a block without the thread's cache. The caller sets its mark.
void* Pool::take_marked(unsigned bucket, std::size_t bytes, blocks::BucketSet::CountAs count_as,
                        SlowPath& path) noexcept {
    blocks::BucketSet* const set = thread_registry().marked_set(buckets_);
    if (set == nullptr) {
        path.refusal = pages::no_records();
        return nullptr;
    }
    void* const block = set->allocate_direct(bucket, bytes, path, count_as);
    if (block == nullptr) return nullptr;
    has_marks_.store(true, std::memory_order_relaxed);
    thread_registry().note_addresses(*set, &block, 1);
    return block;
}

void* Pool::allocate_charged_pages(blocks::Cache* cache, std::size_t bytes, std::size_t alignment,
                                   SlowPath& path) noexcept {
    BudgetNode& budget = *statistics::scope_budget;
    const std::size_t needed = pages::LargeBlocks::pages_of(bytes) * pages::page_bytes;
    if (!charge_one(needed, path)) return nullptr;
    void* const block = allocate_whole_pages(cache, bytes, alignment, path);
    if (block == nullptr) {
        budget.cancel(needed);
        return nullptr;
    }
    // A block that was free may be larger.
    pages::Span& span = *heap_.space().map().at(block).span();
    if (span.bytes() == needed || charge_one(span.bytes() - needed, path)) {
        mark_large(span, budget);
        return block;
    }
    free_large(span);
    budget.cancel(needed);
    return nullptr;
}

void Pool::mark_large(pages::Span& span, BlockMark& mark) noexcept {
    has_marks_.store(true, std::memory_order_relaxed);
    span.set_mark(mark);
}

void Pool::free_marked_large(pages::Span& span) noexcept {
    span.take_mark().on_free(span.bytes());
    free_large(span);
}

// The free was recorded.
void Pool::free_marked(void* p, PageEntry entry, StatedSize stated) noexcept {
    blocks::BucketSet* const set = entry.pool_number() == heap_.pool_number()
                                       ? buckets_.marked.load(std::memory_order_acquire)
                                       : nullptr;
    const unsigned bucket = set == nullptr ? bucket_count : entry.span()->marked_bucket();
    pages::BlockStates::Mark* const word =
        bucket < bucket_count ? (*set)[bucket].mark_of(p, entry) : nullptr;
    bool ends = word != nullptr;
    if (checked() && ends) {
        ends = stated.agrees(bucket) && (*set)[bucket].end_use(p, entry, max_requested(stated));
    }
    if (ends && is_marked() && !check_and_mark_freed(p, {bucket_bytes(bucket), bucket}))
        [[unlikely]]
        return;
    BlockMark* const mark = ends ? word->load(std::memory_order_relaxed) : nullptr;
    if (mark == nullptr) [[unlikely]]
        return checked() ? refuse(p, stated) : misused(p, find(p));
    blocks::Cache* const cache = blocks::own_cache(*set);
    if (cache != nullptr && cache->push_exposed(bucket, p, mark)) return;
    word->store(nullptr, std::memory_order_relaxed);
    mark->on_free(bucket_bytes(bucket));
    Changes changes;
    if (cache != nullptr) {
        cache->push_slow(bucket, p, changes);
    } else {
        set->deallocate_direct(bucket, p, changes);
    }
    end_slow_path(changes);
}

// Returns the budget that the block in use at `p` is charged to by a scope, or nullptr.
BlockMark* Pool::charge_of(const void* p) noexcept {
    const PageEntry entry = heap_.space().map().at(p);
    BlockMark* mark = nullptr;
    if (entry.pool_number() != heap_.pool_number()) return nullptr;
    if (entry.is_marked()) {
        blocks::Bucket& bucket = (*buckets_.marked)[entry.span()->marked_bucket()];
        const auto* const word = bucket.mark_of(p, entry);
        if (word != nullptr) mark = word->load(std::memory_order_relaxed);
    } else if (entry.is_large_in_use()) {
        mark = entry.span()->mark();
    }
    return mark == nullptr ? nullptr : mark->charge();
}

bool Pool::must_charge(const void* p, std::size_t bytes) noexcept {
    if (!is_in_scope()) return false;
    // No scope charges what a plan serves.
    const bool is_served = bytes > serving.max_unserved_bytes &&
                           pages::address_space().map().at(p).kind() == pages::PageKind::served;
    return !is_served && charge_of(p) != statistics::scope_budget;
}

// The bucket of a span that is being set up is not known yet, so it is not read.
Pool::Finding Pool::find_marked(const void* p) noexcept {
    blocks::BucketSet* const set = buckets_.marked.load(std::memory_order_acquire);
    Finding found;
    if (set == nullptr || heap_.space().map().at(p).pool_number() != heap_.pool_number())
        return found;
    for (unsigned bucket = 0; bucket != bucket_count; ++bucket) {
        if (found.what == Finding::What::foreign) found = find_in(*set, bucket, p);
    }
    return found;
}

// Exposed blocks of scopes are taken back, and of a pool with a budget free memory is given back.
void Pool::give_free_memory(const BudgetNode& budget, std::size_t bytes) noexcept {
    const BudgetNode* const own = heap_.options().budget;
    const bool is_charged = own != nullptr ? own->is_within(budget)
                                           : thread_registry().exposes_within(buckets_, budget);
    if (!is_charged) return;
    Changes changes;
    gather(changes);
    if (own != nullptr) heap_.give_back(bytes, changes);
    report(changes);
}

std::uint64_t Pool::charged_budget() const noexcept {
    const BudgetNode* const own = heap_.options().budget;
    const BudgetNode* const budget = own != nullptr ? own : statistics::scope_budget;
    return budget == nullptr ? 0 : budget->statistics().id;
}

void watch_budgets() noexcept {
    static constexpr statistics::BudgetHooks hooks{
        []() noexcept { thread_registry().change_scope(); },
        [](BudgetNode& budget, std::size_t bytes) noexcept {
            return give_free_memory_of_pools(budget, bytes);
        }};
    statistics::set_budget_hooks(hooks);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
