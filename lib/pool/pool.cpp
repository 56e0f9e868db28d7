#include "pool/pool.hpp"

#include "blocks/marked_set.hpp"
#include "events/recorder_hooks.hpp"
#include "events/timeline.hpp"
#include "kinds/free_memory.hpp"
#include "kinds/kinds.hpp"
#include "kinds/reports.hpp"
#include "limits/ladder.hpp"
#include "limits/pressure_watch.hpp"
#include "pool/background_trimmer.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

using kinds::Found;
using kinds::PoolParts;
using pages::Changes;
using pages::PageEntry;
using pages::SlowPath;
using Magazines = blocks::BucketDepot::Magazines;

// Without checks, an alignment that leads to whole pages states nothing.
kinds::Stated stated_by(const PoolParts& pool, const FreedAs& freed) noexcept {
    if (freed.bytes == FreedAs::unknown) return {.as = freed};
    const bool is_known = freed.alignment != FreedAs::unknown;
    const std::size_t alignment = is_known ? freed.alignment : smallest_block_bytes;
    const unsigned bucket = kinds::bucket_for(freed.bytes, alignment);
    const bool is_aligned = alignment > smallest_block_bytes && bucket == bucket_count;
    if (is_aligned && !pool.is_checked()) return {.as = freed};
    return {bucket, freed};
}

// The parts of the free memory add up to the capacity less what is in use, even if other threads
// allocate and free at the same time: free memory that no other part accounts for is reported as
// lying between blocks.
AllocationFailure describe(const PoolStatistics& now, std::size_t bytes,
                           const pages::Refusal& refusal) noexcept {
    AllocationFailure failure =
        base::failure_of(refusal, bytes, now.in_use_bytes, now.capacity_bytes);
    failure.knows_free = refusal.knows_free;
    if (!failure.knows_free) return failure;
    std::size_t free = now.capacity_bytes - std::min(now.in_use_bytes, now.capacity_bytes);
    const auto take = [&](std::size_t part) {
        part = std::min(part, free);
        free -= part;
        return part;
    };
    failure.free_pages = take(refusal.free_pages);
    failure.largest_free = std::min(refusal.largest_free, failure.free_pages);
    failure.with_threads = take(now.parked_bytes + now.lost_bytes);
    failure.between_blocks = free;
    return failure;
}

}  // namespace

Pool* Pool::make(const PoolOptions& options) {
    const unsigned number = blocks::PoolNumbers::take();
    if (number == blocks::PoolNumbers::none) return nullptr;
    try {
        Pool* const pool = make(options, number);
        if (pool == nullptr) blocks::PoolNumbers::give_back(number);
        return pool;
    } catch (...) {
        blocks::PoolNumbers::give_back(number);
        throw;
    }
}

Pool* Pool::make(const PoolOptions& given, unsigned number) {
    PoolOptions options = given;
    options.name = base::cut_utf8(given.name, sizeof PoolStatistics::name - 1);
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
    kinds::report_leaks(pool.parts_);
    const unsigned number = pool.parts_.number();
    {
        const std::lock_guard guard(kinds::block_servers());
        kinds::block_servers().for_each(
            [&](kinds::BlockServer& server) { server.note_end_of(number); });
    }
    pool.~Pool();
    platform::unmap(&pool, platform::whole_pages(sizeof(Pool)));
    blocks::PoolNumbers::give_back(number);
}

Pool::Pool(PoolOptions&& options, unsigned number,
           statistics::OwnedRecord<statistics::PoolRecord>&& record) noexcept
    : parts_(std::move(options), number, std::move(record)) {
    if (platform::has_memory_tool()) blocks::thread_registry().hide_caches();
    blocks::thread_registry().enter(parts_.buckets);
    events::name_source(TraceSource::pool, parts_.id(), parts_.options.name);
    background_trimmer().watch_forks();
    background_trimmer().wanted(parts_.options.retain.background);
    watch_budgets();
    pool_list().enter(*this);
    if (parts_.is_sampled() && watch::guarded_area().set_up()) stop_at_faults();
    if (!parts_.is_hardened()) return;
    kinds::harden(parts_);
    stop_at_faults();
    if (!parts_.is_global()) return;
    pages::set_exact_size(number, [](const void* p) noexcept {
        return kinds::checked_usable_size(PoolAccess::of(global_pool.pool).parts(), p);
    });
}

Pool::~Pool() {
    background_trimmer().no_longer_wanted(parts_.options.retain.background);
    if (parts_.totals().guarded_allocations.load(std::memory_order_relaxed) != 0)
        parts_.heap.capacity().refund_outside(watch::guarded_area().forget_pool(parts_.number()));
    events::record(TraceAction::gone, parts_.id(), nullptr, 0);
}

void Pool::offer_finer_sizes() noexcept {
    if (parts_.is_checked() || parts_.has_finer_sizes()) return;
    for (unsigned series = 1; series != base::series_count; ++series) {
        if (!parts_.counters.add_shared(series)) return;
    }
    constexpr std::size_t bytes = (base::series_count - 1) * sizeof(blocks::BucketSet);
    void* const memory = parts_.records.allocate(bytes, alignof(blocks::BucketSet));
    if (memory == nullptr) return;
    auto* const finer = static_cast<blocks::BucketSet*>(memory);
    for (unsigned series = 1; series != base::series_count; ++series) {
        blocks::thread_registry().enter(*new (finer + series - 1) blocks::BucketSet(
            parts_.buckets, series, blocks::BucketSet::HasMarks::no));
    }
    parts_.finer.store(finer, std::memory_order_release);
}

// How a request travels ------------------------------------------------------------------------

const kinds::Route& Pool::route_of(const Request& request) const noexcept {
    const kinds::Route* route = parts_.routes;
    while (!route->takes(parts_, request)) ++route;
    return *route;
}

void* Pool::allocate(Request request, SlowPath& path) noexcept {
    const std::size_t bytes = request.bytes;
    if (bytes == 0) return nullptr;
    // A trace contains the alignment, and its readers infer from it whether finer sizes served.
    request.alignment = std::max(
        request.alignment, parts_.has_finer_sizes() ? base::finer_alignment : smallest_block_bytes);
    const kinds::Route& route = route_of(request);
    if (route.is_lent) return route.allocate(parts_, request, path);
    events::look_for_recorder();
    void* block = nullptr;
    if (bytes > parts_.options.max_allocation) {
        path.refusal = {"max_allocation", parts_.options.max_allocation};
        if (bytes <= pages::max_large_bytes) path.refusal.needed_limit = bytes;
    } else {
        block = route.allocate(parts_, request, path);
        if (block == nullptr) block = try_under_pressure(route, request, path);
    }
    if (path.untried.count != 0 && !serves_malloc(parts_.number())) parts_.heap.try_huge_page(path);
    end_slow_path(path);
    // Never on frees: a holder may free its blocks while it holds a lock that `give` takes.
    limits::look_at_pressure();
    if (block == nullptr) count_failure(bytes, path.refusal);
    if (block != nullptr && parts_.is_shown_to_tool()) [[unlikely]]
        kinds::mark_new(parts_, block, bytes);
    if (block != nullptr && request.first_touch == kinds::FirstTouch::by_pool)
        kinds::prefault(parts_, block, bytes, path);
    const auto action = block == nullptr ? TraceAction::refuse : TraceAction::allocate;
    events::record(action, parts_.id(), block, bytes, request.alignment);
    return block;
}

[[gnu::noinline]] void* Pool::try_under_pressure(const kinds::Route& route, const Request& request,
                                                 SlowPath& path) noexcept {
    void* block = nullptr;
    kinds::KeptMemory kept{parts_, Magazines::keep, path};
    const auto retry = [&] {
        block = route.allocate(parts_, request, path);
        return block != nullptr;
    };
    const limits::Ladder& ladder = limits::ladder();
    const bool is_met =
        ladder.climb(&kept, path.budget, retry) ||
        (request.bytes <= pages::max_large_bytes && ladder.gives_for(path.refusal) && retry());
    if (is_met) report(PoolEvent::Kind::pressure, EntryKind::pressure, request.bytes);
    return block;
}

void* Pool::allocate_or_throw(const Request& request) {
    SlowPath path;
    void* const block = allocate(request, path);
    if (block == nullptr && request.bytes != 0) throw error_for(request.bytes, path);
    return block;
}

void* Pool::allocate_zeroed(std::size_t bytes, SlowPath& path) noexcept {
    void* const block = allocate({bytes, smallest_block_bytes}, path);
    if (block == nullptr) return nullptr;
    const PageEntry entry = parts_.entry(block);
    // Pages that come fresh from the system contain zeros already.
    if (entry.placed() != nullptr) return block;
    const bool is_clean = entry.is_large_in_use() && entry.span()->clean;
    if (!is_clean) std::memset(block, 0, bytes);
    platform::mark_defined(block, bytes);
    return block;
}

void* Pool::reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes) {
    const Found old = kinds::find(parts_, p);
    if (!old.is_block()) {
        kinds::report_pointer(parts_, p, old, "reallocate");
        throw AllocationError(parts_.name(), new_bytes, 0, 0, "block at this address", 0);
    }
    old_bytes = kinds::bytes_to_copy(parts_, p, old, old_bytes);
    const bool may_stay = (old.requested != 0 || !platform::resizes_need_old_size()) &&
                          !kinds::must_charge(parts_, p, new_bytes);
    const PageEntry entry = parts_.entry(p);
    if (may_stay && parts_.kinds.of(entry).resize(parts_, p, old, new_bytes) != nullptr) {
        if (entry.kind() == pages::PageKind::served) return p;
        if (parts_.is_shown_to_tool()) {
            platform::mark_resized({p, new_bytes, old.usable},
                                   old.requested != 0 ? old.requested : old_bytes);
        }
        events::record(TraceAction::resize, parts_.id(), p, new_bytes);
        return p;
    }
    if (void* const resized = resize_pages(p, new_bytes)) return resized;
    void* const moved = allocate_or_throw({new_bytes, smallest_block_bytes});
    std::memcpy(moved, p, std::min(old_bytes, new_bytes));
    deallocate(p);
    return moved;
}

void* Pool::resize_pages(void* p, std::size_t bytes) noexcept {
    SlowPath path;
    void* const resized = kinds::resize_without_copy(parts_, p, bytes, path);
    end_slow_path(path);
    return resized;
}

// How a free travels ---------------------------------------------------------------------------

void Pool::deallocate(void* p, const FreedAs& freed) noexcept {
    const PageEntry entry = parts_.entry(p);
    kinds::record_end_if_recording(parts_, p, entry);
    const kinds::Kind& kind = parts_.kinds.of(parts_.owns(entry) ? entry : PageEntry());
    Changes changes;
    const bool is_slow = kind.free(parts_, p, entry, stated_by(parts_, freed), changes);
    if (is_slow || background_trimmer().is_asleep()) end_slow_path(changes);
}

// Free memory ----------------------------------------------------------------------------------

bool Pool::reserve(std::size_t capacity, SlowPath& path) noexcept {
    bool done = parts_.heap.reserve(capacity, path);
    while (!done && path.budget.may_retry()) done = parts_.heap.reserve(capacity, path);
    if (!done && capacity <= pages::max_large_bytes && limits::ladder().gives_for(path.refusal))
        done = parts_.heap.reserve(capacity, path);
    report(path);
    if (!done) count_failure(capacity, path.refusal);
    return done;
}

std::size_t Pool::trim() noexcept {
    Changes changes;
    kinds::empty_caches(parts_, Magazines::destroy, changes);
    parts_.heap.trim(changes);
    parts_.buckets.drop_free_pages();
    report(changes);
    return changes.given_back;
}

// The limit takes effect first, so that the pool does not grow beyond it while memory is returned.
void Pool::set_max_capacity(std::size_t bytes) noexcept {
    {
        // Both are set under one lock, so that the published limit is the one in effect when
        // several threads set it.
        const std::lock_guard guard(parts_.heap);
        parts_.heap.capacity().limit(bytes);
        parts_.record->limit_bytes.store(bytes, std::memory_order_relaxed);
    }
    if (bytes == 0 || capacity() <= bytes) return;
    Changes changes;
    kinds::empty_caches(parts_, Magazines::keep, changes);
    parts_.heap.give_back(capacity() - std::min(capacity(), bytes), changes);
    report(changes);
}

// Exposed blocks of scopes are taken back, and of a pool with a budget free memory is given back.
void Pool::give_free_memory(const BudgetNode& budget, std::size_t bytes) noexcept {
    const BudgetNode* const own = parts_.heap.options().budget;
    const bool is_charged =
        own != nullptr ? own->is_within(budget) : blocks::exposes_within(parts_.buckets, budget);
    if (!is_charged) return;
    Changes changes;
    kinds::empty_caches(parts_, Magazines::keep, changes);
    if (own != nullptr) parts_.heap.give_back(bytes, changes);
    report(changes);
}

// If what is free here is more than what all others may still take, they could meet the limit of
// the machine or of a control group while this pool keeps unused memory.
void Pool::end_slow_path(const Changes& changes) noexcept {
    report(changes);
    background_trimmer().wake_if_asleep();
    limits::CommitBudget& budget = limits::commit_budget();
    const std::size_t free = kinds::unoffered_bytes(parts_);
    if (!offer_pace_.is_due(free, budget.ceiling())) [[likely]]
        return;
    offer_pace_.begin_again(free);
    if (budget.has_available(free, platform::monotonic_clock_ns())) return;
    Changes offered;
    kinds::offer_free(parts_, offered);
    offer_pace_.begin_again(kinds::unoffered_bytes(parts_));
    report(offered);
}

// Events ---------------------------------------------------------------------------------------

void Pool::report(const Changes& changes) noexcept {
    if ((changes.grown | changes.given_back) == 0) return;
    parts_.counters.fold();
    events::record_capacity(parts_.id(), parts_.totals().capacity_bytes);
    if (changes.grown != 0) report(PoolEvent::Kind::growth, EntryKind::growth, changes.grown);
    if (changes.given_back != 0)
        report(PoolEvent::Kind::give_back, EntryKind::give_back, changes.given_back);
}

void Pool::count_failure(std::size_t bytes, const pages::Refusal& refusal) noexcept {
    const LimitKind limit = events::limit_kind(refusal);
    // Relaxed: a count that orders nothing.
    parts_.totals().failures[static_cast<unsigned>(limit)].fetch_add(1, std::memory_order_relaxed);
    parts_.counters.fold();
    report(PoolEvent::Kind::failure, events::refusal_kind(limit), bytes, limit, refusal.limit);
}

// A callback may use the pool; events that it causes call no callback.
void Pool::report(PoolEvent::Kind kind, EntryKind entry, std::size_t bytes, LimitKind limit_kind,
                  const char* limit) noexcept {
    events::write_entry(entry, limit_kind, bytes, parts_.options.name);
    if (!parts_.options.on_event || kinds::QuietEvents::exist()) return;
    const kinds::QuietEvents quiet;
    parts_.options.on_event({.kind = kind,
                             .pool = parts_.name(),
                             .bytes = bytes,
                             .in_use = parts_.counters.in_use_bytes(),
                             .capacity = capacity(),
                             .limit = limit});
}

AllocationError Pool::error_for(std::size_t bytes, const pages::SlowPath& path) const noexcept {
    AllocationFailure failure = describe(parts_.counters.statistics(), bytes, path.refusal);
    const limits::BudgetLines lines(path.budget);
    failure.details = lines.c_str();
    return {parts_.name(), failure};
}

}  // namespace abi_2
}  // namespace tensorpool::detail
