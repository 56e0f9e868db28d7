#include "pool/pool.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "base/alignment.hpp"
#include "base/checks.hpp"
#include "blocks/bucket_states.hpp"
#include "blocks/thread_registry.hpp"
#include "pages/marked/guarded_area.hpp"
#include "platform/platform.hpp"
#include "platform/tools/memory_tools.hpp"
#include "platform/whole_pages.hpp"
#include "pool/background_trimmer.hpp"
#include "pool/block_server.hpp"
#include "statistics/budget/named_budgets.hpp"
#include "statistics/budget/pressure_watch.hpp"
#include "statistics/recorder_hooks.hpp"
#include "statistics/timeline/timeline.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

using pages::Changes;
using pages::SlowPath;

BudgetNode* budget_of(const PoolOptions& options) noexcept {
    using namespace statistics;
    if (options.budget != nullptr) return BudgetAccess::node_of(options.budget);
    return find_named_budget(BudgetSubject::pool, options.name);
}

pages::HeapOptions heap_options(const PoolOptions& options) noexcept {
    pages::HeapOptions heap{.max_capacity = options.max_capacity,
                            .growth = options.growth,
                            .retain = options.retain,
                            .huge_pages = options.huge_pages,
                            .numa = options.numa,
                            .budget = budget_of(options),
                            .clock_ns = platform::monotonic_clock_ns,
                            .folios = &pages::folio_choice()};
    heap.keep_records = base::checks_calls(options.checks);
    if (options.retain.milliseconds == 0) heap.retain.bytes = 0;
    return heap;
}

blocks::States states_for(Checks checks) noexcept {
    if (!base::checks_calls(checks)) return blocks::States::none;
    if (checks == Checks::hardened) return blocks::States::hardened;
    return checks == Checks::basic ? blocks::States::uses : blocks::States::requests;
}

// No block has as many bytes as the number that stands for an unknown size.
std::size_t stated_bytes(std::size_t bytes) noexcept {
    return std::min(bytes, FreedAs::unknown - 1);
}

// Cuts the name to the length that statistics can hold, without splitting a UTF-8 character.
PoolOptions with_short_name(PoolOptions options) {
    constexpr std::size_t max_length = sizeof PoolStatistics::name - 1;
    std::size_t length = std::min(options.name.size(), max_length);
    const auto continues = [&](std::size_t at) { return (options.name[at] & 0xC0) == 0x80; };
    while (length != 0 && length < options.name.size() && continues(length)) --length;
    options.name.resize(length);
    return options;
}

}  // namespace

Pool* Pool::make(const PoolOptions& options) {
    blocks::ThreadRegistry& registry = blocks::thread_registry();
    const unsigned number = registry.take_number();
    if (number == blocks::ThreadRegistry::no_number) return nullptr;
    try {
        Pool* const pool = make(options, number);
        if (pool == nullptr) registry.give_back_number(number);
        return pool;
    } catch (...) {
        registry.give_back_number(number);
        throw;
    }
}

Pool* Pool::make(const PoolOptions& given, unsigned number) {
    PoolOptions options = with_short_name(given);
    statistics::OwnedRecord<statistics::PoolRecord> record(
        options.name, [&options](statistics::PoolRecord& made) {
            made.limit_bytes.store(options.max_capacity, std::memory_order_relaxed);
            made.totals.retain_bytes.store(options.retain.bytes, std::memory_order_relaxed);
            made.totals.retain_ms.store(options.retain.milliseconds, std::memory_order_relaxed);
        });
    if (!record) return nullptr;
    const std::size_t bytes = platform::whole_pages(sizeof(Pool));
    void* const memory = platform::map(bytes, platform::page_bytes());
    if (memory == nullptr) return nullptr;
    try {
        return new (memory) Pool(std::move(options), number, std::move(record));
    } catch (...) {
        platform::unmap(memory, bytes);
        throw;
    }
}

void Pool::destroy(Pool& pool) noexcept {
    pool_list().leave(pool);
    pool.check_no_leaks();
    {
        const std::lock_guard guard(block_servers());
        block_servers().for_each([&](BlockServer& server) { server.note_end_of(pool); });
    }
    const unsigned number = pool.heap_.pool_number();
    pool.~Pool();
    platform::unmap(&pool, platform::whole_pages(sizeof(Pool)));
    blocks::thread_registry().give_back_number(number);
}

Pool::Pool(PoolOptions&& options, unsigned number,
           statistics::OwnedRecord<statistics::PoolRecord>&& record) noexcept
    : options_(std::move(options)),
      max_parked_bytes_(
          is_hardened() ? 0 : std::min(blocks::LargeMagazine::max_bytes, options_.max_allocation)),
      place_(place_of(number)),
      record_(std::move(record)),
      heap_(pages::address_space(), statistics::commit_budget(), number, heap_options(options_),
            record_->totals),
      large_(heap_, record_->totals),
      buckets_(options_.name.c_str(), states_for(options_.checks), heap_, large_, records_,
               counters_, record_->totals) {
    records_.count_in(record_->totals.record_bytes);
    hide_caches_from_tools();
    if (is_sampled() || is_profiled()) buckets_.sample_requests();
    blocks::thread_registry().enter(buckets_);
    statistics::snapshot_sources().enter(*this);
    background_trimmer().watch_forks();
    background_trimmer().wanted(options_.retain.background);
    watch_budgets();
    pool_list().enter(*this);
    if (is_sampled()) set_up_guards();
    if (is_hardened()) harden();
}

Pool::~Pool() {
    background_trimmer().no_longer_wanted(options_.retain.background);
    if (is_sampled()) heap_.refund_outside(pages::guarded_area().forget_pool(heap_.pool_number()));
    statistics::snapshot_sources().leave(*this);
    buckets_.for_each_series([](blocks::BucketSet& set) { blocks::thread_registry().leave(set); });
    // From here on, no thread conceals blocks of this pool.
    if (has_marks_.load(std::memory_order_relaxed)) heap_.end_marks();
    buckets_.for_each_series([](blocks::BucketSet& set) {
        if (!set.is_first()) std::destroy_at(&set);
    });
}

void Pool::offer_finer_sizes() noexcept {
    if (checked() || has_finer_sizes()) return;
    for (unsigned series = 1; series != base::series_count; ++series) {
        if (!counters_.add_shared(series)) return;
    }
    constexpr std::size_t bytes = (base::series_count - 1) * sizeof(blocks::BucketSet);
    void* const memory = records_.allocate(bytes, alignof(blocks::BucketSet));
    if (memory == nullptr) return;
    auto* const finer = static_cast<blocks::BucketSet*>(memory);
    for (unsigned series = 1; series != base::series_count; ++series) {
        blocks::thread_registry().enter(*new (finer + series - 1)
                                            blocks::BucketSet(buckets_, series));
    }
    finer_.store(finer, std::memory_order_release);
}

std::uint64_t Pool::id() const noexcept {
    return record_->id.load(std::memory_order_relaxed);
}

unsigned Pool::table_number() const noexcept {
    return std::min(heap_.pool_number(), cached_pool_count);
}

void* Pool::allocate(std::size_t bytes, std::size_t alignment, SlowPath& path,
                     FirstTouch first_touch) noexcept {
    if (bytes == 0) return nullptr;
    if (bytes > serving.max_unserved_bytes && is_global()) [[unlikely]]
        return allocate_served(bytes, alignment, path, first_touch);
    // A trace contains the alignment, and its readers infer from it whether finer sizes served.
    alignment =
        std::max(alignment, has_finer_sizes() ? base::finer_alignment : smallest_block_bytes);
    statistics::look_for_recorder();
    void* block = nullptr;
    if (bytes > options_.max_allocation) {
        path.refusal = {"max_allocation", options_.max_allocation};
        if (bytes <= pages::max_large_bytes) path.refusal.needed_limit = bytes;
    } else {
        block = try_once(bytes, alignment, path);
        if (block == nullptr) block = try_under_pressure(bytes, alignment, path);
    }
    if (path.untried.count != 0 && !serves_malloc(heap_.pool_number())) heap_.try_huge_page(path);
    end_slow_path(path);
    // Never on frees: a holder may free its blocks while it holds a lock that `give` takes.
    statistics::look_at_pressure();
    if (block == nullptr) count_failure(bytes, path.refusal);
    if (block != nullptr && is_marked()) [[unlikely]]
        mark_new(block, bytes);
    if (block != nullptr && first_touch == FirstTouch::by_pool) prefault(block, bytes, path);
    const auto action = block == nullptr ? TraceAction::refuse : TraceAction::allocate;
    statistics::record(action, id(), block, bytes, alignment);
    return block;
}

void* Pool::try_under_pressure(std::size_t bytes, std::size_t alignment, SlowPath& path) noexcept {
    void* block = nullptr;
    do {
        // Threads that are inside a slow path keep their blocks. Retry until they are done.
        constexpr unsigned max_tries = 16;
        for (unsigned tried = 0; block == nullptr && tried != max_tries; ++tried) {
            const bool all = gather(path);
            block = try_once(bytes, alignment, path);
            if (all) break;
            if (block == nullptr) std::this_thread::yield();
        }
    } while (block == nullptr && path.budget.may_retry());
    if (block != nullptr) {
        statistics::write_entry(EntryKind::pressure, LimitKind::none, bytes, options_.name);
        report(PoolEvent::Kind::pressure, bytes, "");
    }
    return block;
}

void* Pool::allocate_or_throw(std::size_t bytes, std::size_t alignment, FirstTouch first_touch) {
    SlowPath path;
    void* const block = allocate(bytes, alignment, path, first_touch);
    if (block == nullptr && bytes != 0) fail(bytes, path);
    return block;
}

void* Pool::try_once(std::size_t bytes, std::size_t alignment, SlowPath& path) noexcept {
    if (is_hardened()) return try_hardened(bytes, alignment, path);
    const unsigned bucket = bucket_for(bytes, alignment);
    if (bucket == bucket_count) return allocate_large(bytes, alignment, path);
    if (is_in_scope()) [[unlikely]]
        return allocate_charged(bucket, bytes, alignment, path);
    if (alignment <= base::finer_alignment) return allocate_finest(bytes, alignment, path);
    void* const block = allocate_block(buckets_, bucket, bytes, alignment, path);
    if (block != nullptr && checked()) buckets_[bucket].begin_use(block, bytes);
    return block;
}

void* Pool::allocate_finest(std::size_t bytes, std::size_t alignment, SlowPath& path) noexcept {
    const base::BlockSize size = base::finest_size(bytes);
    return allocate_block(series(size.series), size.bucket, bytes, alignment, path);
}

// Before a cache of a finer series, the thread gets one of the first series: the pool counts its
// threads by the caches of the first series.
blocks::Cache* Pool::attach(blocks::BucketSet& set) noexcept {
    blocks::ThreadRegistry& registry = blocks::thread_registry();
    if (!set.is_first() && registry.attach(buckets_) == nullptr) return nullptr;
    return registry.attach(set);
}

void* Pool::allocate_block(blocks::BucketSet& set, unsigned bucket, std::size_t bytes,
                           std::size_t alignment, SlowPath& path) noexcept {
    blocks::Cache* const cache = attach(set);
    if (cache == nullptr) return set.allocate_direct(bucket, bytes, path);
    if (cache->bytes_to_sample < static_cast<std::int64_t>(bytes)) [[unlikely]] {
        void* const block = allocate_sampled(*cache, bytes, alignment, path);
        if (block != nullptr) return block;
    }
    if (void* const block = cache->pop(bucket, bytes)) return block;
    if (cache->is_time_to_look()) keep_to_retention(path);
    return cache->pop_slow(bucket, bytes, path);
}

void Pool::deallocate(void* p) noexcept {
    if (checked()) return is_hardened() ? deallocate_hardened(p, {}) : deallocate_checked(p, {});
    const pages::PageEntry entry = heap_.space().map().at(p);
    const bool ours = entry.pool_number() == heap_.pool_number();
    if (!ours || !entry.is_bucket() || !blocks::may_begin_block(p, entry)) return free_pages(p);
    blocks::BucketSet& set = series(entry.series());
    if (!set.is_first() && !set[entry.bucket()].begins_block(p, entry)) [[unlikely]]
        return misused(p, find(p));
    free_unchecked_block(set, entry.bucket(), p);
}

void Pool::deallocate(void* p, std::size_t bytes) noexcept {
    if (checked()) {
        if (is_hardened())
            return deallocate_hardened(p, {stated_bytes(bytes), smallest_block_bytes});
        return deallocate_checked(p, {bytes, std::min(bucket_of(bytes), bucket_count)});
    }
    if (is_sampled() && free_guarded(p, bytes)) return;
    const unsigned bucket = bucket_of(bytes);
    if (bucket >= bucket_count) return free_pages(p);
    const pages::PageEntry entry = heap_.space().map().at(p);
    if (entry.is_marked()) {
        record_end_if_recording(p);
        return free_marked(p, entry, {bytes, bucket});
    }
    free_unchecked_block(buckets_, bucket, p);
}

void Pool::deallocate(void* p, std::size_t bytes, std::size_t alignment) noexcept {
    const unsigned bucket = bucket_for(bytes, alignment);
    if (is_sampled() && free_guarded(p, bytes)) return;
    if (checked()) {
        if (is_hardened()) return deallocate_hardened(p, {stated_bytes(bytes), alignment});
        deallocate_checked(p, {bytes, bucket});
    } else if (bucket < bucket_count) {
        deallocate(p, bucket_bytes(bucket));
    } else {
        deallocate(p);
    }
}

void Pool::free_unchecked_block(blocks::BucketSet& set, unsigned bucket, void* p) noexcept {
    record_end_if_recording(p);
    free_block(set, bucket, p);
}

// Called before the block is freed, that is, before another thread can get it.
void Pool::record_end_if_recording(void* p) noexcept {
    statistics::look_for_recorder();
    if (statistics::is_recording()) [[unlikely]]
        record_end(p);
}

void Pool::record_end(void* p) noexcept {
    const pages::PageEntry entry = heap_.space().map().at(p);
    if (entry.kind() == pages::PageKind::served) return;  // not recorded as a block of this pool
    std::size_t bytes = 0;  // for a pointer that is not a block of this pool; reported later
    if (entry.pool_number() == heap_.pool_number()) {
        if (entry.is_bucket()) bytes = base::block_bytes(entry.series(), entry.bucket());
        if (entry.is_marked()) bytes = base::block_bytes(0, entry.span()->marked_bucket());
        if (entry.is_large_in_use()) bytes = entry.span()->bytes();
        if (entry.guarded() != nullptr) bytes = entry.guarded()->requested;
    }
    statistics::record(TraceAction::deallocate, id(), p, bytes);
}

void Pool::free_block(blocks::BucketSet& set, unsigned bucket, void* p, Changes& changes) noexcept {
    blocks::Cache* const cache = attach(set);
    if (cache == nullptr) {
        set.deallocate_direct(bucket, p, changes);
    } else if (!cache->push(bucket, p)) {
        cache->push_slow(bucket, p, changes);
    }
}

void* Pool::allocate_zeroed(std::size_t bytes) {
    SlowPath path;
    void* const block = allocate_zeroed(bytes, path);
    if (block == nullptr && bytes != 0) fail(bytes, path);
    return block;
}

void* Pool::allocate_zeroed(std::size_t bytes, SlowPath& path) noexcept {
    void* const block = allocate(bytes, smallest_block_bytes, path);
    if (block == nullptr) return nullptr;
    const pages::PageEntry entry = heap_.space().map().at(block);
    // Pages that come fresh from the system contain zeros already.
    if (entry.guarded() != nullptr) return block;
    const bool has_span = !entry.is_bucket() && !entry.is_marked() && entry.has_span();
    if (!has_span || !entry.span()->clean) std::memset(block, 0, bytes);
    platform::mark_defined(block, bytes);
    return block;
}

void* Pool::reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes) {
    const Finding old = find(p);
    if (old.what != Finding::What::block) {
        misused(p, old, "reallocate");
        throw AllocationError(options_.name.c_str(), new_bytes, 0, 0, "block at this address", 0);
    }
    old_bytes = check_old_bytes(p, old, old_bytes);
    const unsigned new_bucket = std::min(bucket_of(new_bytes), bucket_count);
    // A sized free computes the bucket from the size, so only blocks of whole pages may shrink in
    // place, and only while at least half of the block stays in use.
    const bool is_guarded = is_hardened() || heap_.space().map().at(p).guarded() != nullptr;
    const bool fits = !is_guarded && new_bytes <= old.usable && new_bucket == old.bucket &&
                      (new_bucket < bucket_count || new_bytes >= old.usable / 2);
    const bool may_stay =
        (old.requested != 0 || !platform::resizes_need_old_size()) && !must_charge(p, new_bytes);
    if (fits && may_stay) {
        if (base::checks_sizes(options_.checks)) remember(p, old, new_bytes);
        const bool is_of_plan = heap_.space().map().at(p).kind() == pages::PageKind::served;
        if (is_of_plan) return p;
        // The next resize must find what this one requested.
        if (is_marked() && old.bucket == bucket_count) remember(p, old, new_bytes);
        if (is_marked())
            platform::mark_resized({p, new_bytes, old.usable},
                                   old.requested != 0 ? old.requested : old_bytes);
        statistics::record(TraceAction::resize, id(), p, new_bytes);
        return p;
    }
    if (void* const longer = lengthen(p, new_bytes)) return longer;
    void* const moved = allocate_or_throw(new_bytes, smallest_block_bytes);
    std::memcpy(moved, p, std::min(old_bytes, new_bytes));
    deallocate(p);
    return moved;
}

}  // namespace abi_2
}  // namespace tensorpool::detail
