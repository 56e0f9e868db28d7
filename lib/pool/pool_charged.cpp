// Blocks that a BudgetScope charges to its budget.

#include <algorithm>

#include "blocks/block_charge.hpp"
#include "blocks/bucket_states.hpp"
#include "blocks/thread_registry.hpp"
#include "pages/marked/sampled_area.hpp"
#include "pool/block_server.hpp"
#include "pool/pool.hpp"
#include "statistics/budget/scope_budget.hpp"
#include "statistics/profile/profiled_blocks.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

using blocks::BlockCharge;
using pages::Changes;
using pages::SampledArea;
using pages::SlowPath;

constexpr const char* limit_of_caches = "the caches of pools and of budgets in them";

}  // namespace

// Inline paths of the thread see the charged cache from then on, so most calls do not come here.
void* Pool::allocate_charged(unsigned bucket, std::size_t bytes, std::size_t alignment,
                             SlowPath& path) noexcept {
    blocks::Cache* const cache = blocks::thread_registry().enter_scope(buckets_);
    if (cache == nullptr) {
        path.refusal = {limit_of_caches, cached_pool_count};
        return nullptr;
    }
    blocks::BucketSet& set = cache->set();
    void* block = nullptr;
    if (cache->bytes_to_sample < static_cast<std::int64_t>(bytes)) [[unlikely]]
        block = sample_charged(*cache, bucket, bytes, alignment, path);
    if (block != nullptr) return block;
    block = cache->pop(bucket, bytes);
    if (block == nullptr) {
        if (cache->is_time_to_look()) keep_to_retention(path);
        block = cache->pop_slow(bucket, bytes, path);
    }
    if (block != nullptr && checked()) set[bucket].begin_use(block, bytes);
    return block;
}

// A sampled block lies outside of the set, so it is charged for itself.
void* Pool::sample_charged(blocks::Cache& cache, unsigned bucket, std::size_t bytes,
                           std::size_t alignment, SlowPath& path) noexcept {
    BlockCharge& charge = cache.set().charge();
    const std::size_t block_bytes = cache.set().block_bytes(bucket);
    if (charge.charge(1, block_bytes, path) == 0) return nullptr;
    void* const block = allocate_sampled(cache.set(), cache, bucket, bytes, alignment, path);
    // Without a record of the sample, its free could not find the charge.
    const bool has_charge = block != nullptr && SampledArea::find(block).profiled() != nullptr;
    if (!has_charge) charge.cancel(block_bytes);
    return block;
}

void* Pool::allocate_charged_pages(blocks::Cache* cache, std::size_t bytes, std::size_t alignment,
                                   SlowPath& path) noexcept {
    blocks::Cache* const entered = blocks::thread_registry().enter_scope(buckets_);
    if (entered == nullptr) {
        path.refusal = {limit_of_caches, cached_pool_count};
        return nullptr;
    }
    BlockCharge& charge = entered->set().charge();
    const std::size_t needed = pages::LargeBlocks::pages_of(bytes) * pages::page_bytes;
    if (charge.charge(1, needed, path) == 0) return nullptr;
    void* const block = allocate_whole_pages(cache, bytes, alignment, path);
    if (block == nullptr) {
        charge.cancel(needed);
        return nullptr;
    }
    // A block that was free may be larger.
    pages::Span& span = *heap_.space().map().at(block).span();
    const bool fits = span.bytes() == needed || charge.charge(1, span.bytes() - needed, path) != 0;
    if (fits) {
        span.set_charge(charge);
        return block;
    }
    free_large(span);
    charge.cancel(needed);
    return nullptr;
}

void Pool::free_charged(void* p, pages::PageEntry entry, StatedSize stated) noexcept {
    record_end_if_recording(p);
    blocks::Bucket& bucket = entry.span()->charged_bucket();
    const bool is_ours = entry.pool_number() == heap_.pool_number();
    const bool ends = checked() ? is_ours && stated.agrees(bucket.number()) &&
                                      bucket.end_use(p, entry, max_requested(stated))
                                : is_ours && bucket.begins_block(p, entry);
    if (!ends) [[unlikely]]
        return checked() ? refuse(p, stated) : misused(p, find(p));
    blocks::BucketSet& set = bucket.charge()->set;
    blocks::Cache* const cache = blocks::own_cache(set);
    const bool may_park = cache != nullptr && cache->is_in_scope && !is_marked();
    if (may_park && cache->push_charged(bucket.number(), p)) [[likely]]
        return;
    free_block(set, bucket.number(), p);
}

// A thread outside of the scopes of the budget parks no block of it.
void Pool::free_charged_block(blocks::BucketSet& set, unsigned bucket, void* p,
                              Changes& changes) noexcept {
    blocks::Cache* const cache = blocks::thread_registry().attached(set);
    if (cache != nullptr && cache->is_in_scope) {
        cache->push_slow(bucket, p, changes);
        return;
    }
    set.deallocate_direct(bucket, p, changes);
    if (set.charge().bytes() == 0) blocks::thread_registry().release_unused(set);
}

void Pool::refund(BlockCharge& charge, std::size_t bytes) noexcept {
    charge.refund(bytes);
    if (charge.bytes() == 0) blocks::thread_registry().release_unused(charge.set);
}

// Returns the budget that the block in use at `p` is charged to by a scope, or nullptr.
BudgetNode* Pool::charge_of(const void* p) const noexcept {
    // The caller got a charged block from a thread that counted the set before.
    if (buckets_.charged_sets.load(std::memory_order_relaxed) == 0) return nullptr;
    const pages::PageEntry entry = pages::address_space().map().at(p);
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

bool Pool::must_charge(const void* p, std::size_t bytes) const noexcept {
    if (!is_in_scope()) return false;
    // No scope charges what a plan serves.
    const bool is_served = bytes > serving.max_unserved_bytes &&
                           pages::address_space().map().at(p).kind() == pages::PageKind::served;
    return !is_served && charge_of(p) != statistics::scope_budget;
}

// The bucket of a span that is being set up is not known yet, so it is not read.
Pool::Finding Pool::find_charged(const void* p) noexcept {
    if (heap_.space().map().at(p).pool_number() != heap_.pool_number()) return {};
    Finding found;
    buckets_.for_each_series([&](blocks::BucketSet& set) {
        if (!set.is_charged()) return;
        for (unsigned bucket = 0; bucket != bucket_count; ++bucket) {
            if (found.what == Finding::What::foreign) found = find_in(set, bucket, p);
        }
    });
    return found;
}

// Parked blocks of scopes are taken back, and of a pool with a budget free memory is given back.
void Pool::give_free_memory(const BudgetNode& budget, std::size_t bytes) noexcept {
    const BudgetNode* const own = heap_.options().budget;
    const bool is_charged = own != nullptr
                                ? own->is_within(budget)
                                : blocks::thread_registry().has_charges_within(buckets_, budget);
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
        [](BudgetNode* ended) noexcept { blocks::thread_registry().change_scope(ended); },
        [](BudgetNode& budget, std::size_t bytes) noexcept {
            return give_free_memory_of_pools(budget, bytes);
        }};
    statistics::set_budget_hooks(hooks);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
