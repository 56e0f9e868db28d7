// Blocks that a BudgetScope charges to its budget.

#include <algorithm>

#include "blocks/block_charge.hpp"
#include "blocks/bucket_states.hpp"
#include "blocks/thread_registry.hpp"
#include "kinds/block_server.hpp"
#include "kinds/bucket_kind.hpp"
#include "kinds/free_memory.hpp"
#include "kinds/large_kind.hpp"
#include "kinds/reports.hpp"
#include "kinds/sampling.hpp"
#include "kinds/tool_marks.hpp"
#include "pages/marked/sampled_area.hpp"

namespace tensorpool::kinds {
namespace {

using blocks::BlockCharge;
using blocks::BucketSet;
using blocks::Cache;
using pages::SampledArea;

constexpr const char* limit_of_caches = "the caches of pools and of budgets in them";

Cache* enter_scope(PoolParts& pool, SlowPath& path) noexcept {
    Cache* const cache = blocks::thread_registry().enter_scope(pool.buckets);
    if (cache == nullptr) path.refusal = {limit_of_caches, detail::cached_pool_count};
    return cache;
}

// A sampled block lies outside of the set, so it is charged for itself.
void* sample_charged(PoolParts& pool, Cache& cache, unsigned bucket, const Request& request,
                     SlowPath& path) noexcept {
    BlockCharge& charge = cache.set().charge();
    const std::size_t block_bytes = cache.set().block_bytes(bucket);
    if (charge.charge(1, block_bytes, path) == 0) return nullptr;
    void* const block =
        allocate_sampled(pool, cache.set(), cache, bucket, request.bytes, request.alignment, path);
    // Without a record of the sample, its free could not find the charge.
    const bool has_charge = block != nullptr && SampledArea::find(block).profiled() != nullptr;
    if (!has_charge) charge.cancel(block_bytes);
    return block;
}

// Inline paths of the thread see the charged cache from then on, so most calls do not come here.
void* allocate_charged_block(PoolParts& pool, unsigned bucket, const Request& request,
                             SlowPath& path) noexcept {
    Cache* const cache = enter_scope(pool, path);
    if (cache == nullptr) return nullptr;
    void* block = nullptr;
    if (cache->bytes_to_sample < static_cast<std::int64_t>(request.bytes)) [[unlikely]]
        block = sample_charged(pool, *cache, bucket, request, path);
    if (block != nullptr) return block;
    block = cache->pop(bucket, request.bytes);
    if (block == nullptr) {
        if (cache->is_time_to_look()) keep_to_retention(pool, path);
        block = cache->pop_slow(bucket, request.bytes, path);
    }
    if (block != nullptr && pool.is_checked()) cache->set()[bucket].begin_use(block, request.bytes);
    return block;
}

// Returns the budget that the block in use at `p` is charged to by a scope, or nullptr.
const BudgetNode* charge_of(const PoolParts& pool, const void* p) noexcept {
    // The caller got a charged block from a thread that counted the set before.
    if (pool.buckets.charged_sets.load(std::memory_order_relaxed) == 0) return nullptr;
    const PageEntry entry = pages::address_space().map().at(p);
    const BlockCharge* charge = nullptr;
    if (entry.is_charged()) {
        charge = entry.span()->charged_bucket().charge();
    } else if (entry.is_large_in_use()) {
        charge = entry.span()->charge();
    } else if (entry.sampled() != nullptr) {
        const statistics::ProfiledBlock* const block = SampledArea::find(p).profiled();
        if (block != nullptr) charge = static_cast<const BlockCharge*>(block->charge);
    }
    return charge == nullptr ? nullptr : charge->budget();
}

}  // namespace

void refund(BlockCharge& charge, std::size_t bytes) noexcept {
    charge.refund(bytes);
    if (charge.bytes() == 0) blocks::thread_registry().release_unused(charge.set);
}

std::uint64_t charged_budget(const PoolParts& pool) noexcept {
    const BudgetNode* const own = pool.heap.options().budget;
    const BudgetNode* const budget = own != nullptr ? own : limits::scope_budget;
    return budget == nullptr ? 0 : budget->statistics().id;
}

PagesCharge::~PagesCharge() {
    if (charge_ != nullptr) refund(*charge_, bytes_);
}

bool takes_charged(const PoolParts& pool, const Request&) noexcept {
    return pool.is_in_scope();
}

void* allocate_charged_pages(PoolParts& pool, Cache* cache, const Request& request,
                             SlowPath& path) noexcept {
    Cache* const entered = enter_scope(pool, path);
    if (entered == nullptr) return nullptr;
    BlockCharge& charge = entered->set().charge();
    const std::size_t needed = pages::LargeBlocks::pages_of(request.bytes) * pages::page_bytes;
    if (charge.charge(1, needed, path) == 0) return nullptr;
    void* const block = allocate_whole_pages(pool, cache, request, path);
    if (block == nullptr) {
        charge.cancel(needed);
        return nullptr;
    }
    // A block that was free may be larger.
    Span& span = *pool.entry(block).span();
    const bool fits = span.bytes() == needed || charge.charge(1, span.bytes() - needed, path) != 0;
    if (fits) {
        span.set_charge(charge);
        return block;
    }
    (void)free_large(pool, span, path);
    charge.cancel(needed);
    return nullptr;
}

void* allocate_charged(PoolParts& pool, const Request& request, SlowPath& path) noexcept {
    if (!is_possible_size(request, path)) return nullptr;
    const unsigned bucket = bucket_for(request.bytes, request.alignment);
    if (bucket < bucket_count) return allocate_charged_block(pool, bucket, request, path);
    return sample_pages(pool, request, path, allocate_charged_pages);
}

// A thread outside of the scopes of the budget parks no block of it.
bool ChargedKind::free(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
                       Changes& changes) const noexcept {
    blocks::Bucket& bucket = entry.span()->charged_bucket();
    const bool ends = pool.is_checked() ? stated.agrees(bucket.number()) &&
                                              bucket.end_use(p, entry, max_requested(pool, stated))
                                        : bucket.begins_block(p, entry);
    if (!ends) [[unlikely]] {
        report_free(pool, p, stated);
        return false;
    }
    BucketSet& set = bucket.charge()->set;
    Cache* cache = blocks::own_cache(set);
    const bool may_park = cache != nullptr && cache->is_in_scope && !pool.is_marked();
    if (may_park && cache->push_charged(bucket.number(), p)) [[likely]]
        return false;
    const Stated known{bucket.number(), {.bytes = bucket.block_bytes()}};
    if (pool.is_marked() && !check_and_mark_freed(pool, p, known)) return false;
    cache = blocks::thread_registry().attached(set);
    if (cache != nullptr && cache->is_in_scope) {
        cache->push_slow(bucket.number(), p, changes);
        return true;
    }
    set.deallocate_direct(bucket.number(), p, changes);
    if (set.charge().bytes() == 0) blocks::thread_registry().release_unused(set);
    return true;
}

// The bucket of a span that is being set up is not known yet, so it is not read.
Found ChargedKind::find(PoolParts& pool, const void* p, PageEntry) const noexcept {
    Found found;
    pool.buckets.for_each_series([&](BucketSet& set) {
        if (!set.is_charged()) return;
        for (unsigned bucket = 0; bucket != bucket_count; ++bucket) {
            if (found.what == Found::What::foreign) found = find_in(pool, set, bucket, p);
        }
    });
    return found;
}

void* ChargedKind::resize(PoolParts& pool, void* p, const Found& found,
                          std::size_t bytes) const noexcept {
    return resize_in_bucket(pool, pool.entry(p).span()->charged_bucket(), p, found, bytes);
}

std::size_t ChargedKind::recorded_bytes(const void*, PageEntry entry) const noexcept {
    return base::block_bytes(0, entry.span()->charged_bucket_number());
}

bool must_charge(const PoolParts& pool, const void* p, std::size_t bytes) noexcept {
    if (!pool.is_in_scope()) return false;
    // No scope charges what a plan serves.
    const bool is_served = bytes > serving.max_unserved_bytes &&
                           pages::address_space().map().at(p).kind() == pages::PageKind::served;
    return !is_served && charge_of(pool, p) != limits::scope_budget;
}

}  // namespace tensorpool::kinds
