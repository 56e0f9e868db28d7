#include "kinds/kinds.hpp"

#include "events/recorder_hooks.hpp"
#include "kinds/free_memory.hpp"
#include "kinds/reports.hpp"
#include "kinds/watcher.hpp"

namespace tensorpool::kinds {
namespace {

using blocks::Cache;
using blocks::thread_registry;
using detail::add;
using detail::add_release;
using detail::LargeCounters;
using pages::LargeBlocks;

// Whether calls are recorded, or another process has requested a recording or a trim.
bool is_recorder_due() noexcept {
    return events::is_answer_due() || events::is_recording();
}

// Whether the thread's cache may serve a request without the rest of the slow path.
bool is_plain(const PoolParts& pool, const Cache& cache, std::size_t bytes) noexcept {
    return !is_recorder_due() && !pool.is_in_scope() && bytes <= serving.max_unserved_bytes &&
           cache.bytes_to_sample >= static_cast<std::int64_t>(bytes);
}

// A parked span stays counted as held, so the totals do not change.
inline void* hand_out_parked(PoolParts& pool, Cache& cache, Span& span,
                             std::size_t bytes) noexcept {
    span.requested_bytes.store(bytes, std::memory_order_release);
    LargeCounters& counted = cache.counters->large;
    cache.bytes_to_sample -= static_cast<std::int64_t>(bytes);
    add(counted.cache_hits, 1);
    add(counted.requested_bytes, bytes);
    add(counted.allocations, 1);
    add(counted.allocated_bytes, span.bytes());
    return pool.large.address_of(span);
}

enum class Source : std::uint8_t { cache, extents, system };

void* hand_out(PoolParts& pool, Cache* own, Span& span, std::size_t bytes, Source source) noexcept {
    span.requested_bytes.store(bytes, std::memory_order_release);
    if (own != nullptr) own->bytes_to_sample -= static_cast<std::int64_t>(bytes);
    count_large(pool, own, [&](LargeCounters& counted, Cache* cache) {
        pool.totals().hold(span.bytes());
        add(counted.cache_hits, source == Source::cache ? 1 : 0);
        add(counted.system_misses, source == Source::system ? 1 : 0);
        add(counted.requested_bytes, bytes);
        add(counted.allocations, 1);
        add(counted.allocated_bytes, span.bytes());
        if (cache == nullptr) statistics::count_shared_large_allocation(bytes, span.bytes());
    });
    return pool.large.address_of(span);
}

[[gnu::noinline]] void* take_other_pages(PoolParts& pool, std::size_t bytes) noexcept {
    Cache* const own = blocks::own_cache(pool.place);
    const std::size_t max_bytes = std::min(pool.options.max_allocation, pages::max_large_bytes);
    if (own == nullptr || bytes > max_bytes || pool.is_hardened() || !is_plain(pool, *own, bytes))
        return nullptr;
    if (bytes > blocks::LargeMagazine::max_bytes) {
        Span* const span = pool.large.take_cached(LargeBlocks::pages_of(bytes));
        return span == nullptr ? nullptr : hand_out(pool, own, *span, bytes, Source::cache);
    }
    Span* const span = own->large.take(LargeBlocks::pages_for(bytes), pool.large);
    if (span == nullptr) return nullptr;
    void* const block = hand_out_parked(pool, *own, *span, bytes);
    statistics::look_at_scopes();
    return block;
}

[[gnu::noinline]] bool free_large_slow(PoolParts& pool, Span& span, Changes& changes) noexcept {
    const std::size_t bytes = span.bytes();
    if (pool.is_shown_to_tool()) platform::mark_freed({pool.large.address_of(span), 0, bytes});
    Cache* own = blocks::own_cache(pool.place);
    if (own == nullptr) own = thread_registry().attach(pool.buckets);
    const bool kept = own != nullptr && bytes <= blocks::LargeMagazine::max_bytes &&
                      own->large.keep(span, pool.large);
    bool look = false;
    count_large(pool, own, [&](LargeCounters& counted, Cache* cache) {
        add_release(counted.deallocations, 1);
        add_release(counted.deallocated_bytes, bytes);
        look = counted.deallocations.load(std::memory_order_relaxed) % 64 == 0;
        if (!kept) pool.totals().let_go(bytes);
        if (cache == nullptr) statistics::count_shared_large_deallocation(bytes);
    });
    if (!kept) pool.large.free(span, changes);
    if (look) keep_to_retention(pool, changes);
    return true;
}

// The added bytes are counted for the existing block, not as another block.
void* extend(PoolParts& pool, Span& span, std::size_t bytes, SlowPath& path) noexcept {
    const std::size_t before = span.bytes();
    Cache* const own = thread_registry().attach(pool.buckets);
    if (!pool.large.extend(span, bytes, path)) {
        // The span behind it may lie in this thread's magazine.
        const bool joined =
            pool.large.waits_behind(span) && own != nullptr && own->large.give_back(path) != 0;
        if (!joined || !pool.large.extend(span, bytes, path)) return nullptr;
    }
    const std::size_t more = span.bytes() - before;
    const std::size_t kept = span.requested_bytes.exchange(bytes, std::memory_order_release);
    count_large(pool, own, [&](LargeCounters& counted, Cache* cache) {
        pool.totals().hold(more);
        add(counted.requested_bytes, bytes - before);
        add(counted.allocated_bytes, more);
        if (cache == nullptr) statistics::count_shared_large_growth(bytes - before, more);
    });
    void* const block = pool.large.address_of(span);
    if (pool.is_shown_to_tool()) platform::mark_resized({block, bytes, span.bytes()}, kept);
    events::record(TraceAction::resize, pool.id(), block, bytes);
    return block;
}

// Counted as one block freed and another allocated. Only the difference counts as newly held.
void* move(PoolParts& pool, Span& span, std::size_t bytes, SlowPath& path) noexcept {
    const std::size_t before = span.bytes();
    void* const old = pool.large.address_of(span);
    Span* const left = pool.large.move(span, bytes, path);
    if (left == nullptr) return nullptr;
    events::record(TraceAction::deallocate, pool.id(), old, before);
    if (pool.is_shown_to_tool()) platform::mark_freed({old, 0, before});
    pool.heap.take_left(*left);
    span.requested_bytes.store(bytes, std::memory_order_release);
    count_large(pool, thread_registry().attach(pool.buckets),
                [&](LargeCounters& counted, Cache* cache) {
                    pool.totals().hold(span.bytes() - before);
                    add_release(counted.deallocations, 1);
                    add_release(counted.deallocated_bytes, before);
                    add(counted.requested_bytes, bytes);
                    add(counted.allocations, 1);
                    add(counted.allocated_bytes, span.bytes());
                    if (cache == nullptr) {
                        statistics::count_shared_large_deallocation(before);
                        statistics::count_shared_large_allocation(bytes, span.bytes());
                    }
                });
    void* const block = pool.large.address_of(span);
    if (pool.is_shown_to_tool()) platform::mark_allocated({block, bytes, span.bytes()});
    if (pool.is_shown_to_tool()) platform::mark_defined(block, std::min(before, bytes));
    events::record(TraceAction::allocate, pool.id(), block, bytes, smallest_block_bytes);
    return block;
}

// The freed bytes are counted, but not as a block. A charged block is refunded for them.
void* shorten(PoolParts& pool, Span& span, std::size_t bytes, Changes& changes) noexcept {
    base::BlockMark* const mark = span.mark();
    base::BlockMark* const charge = mark == nullptr ? nullptr : mark->charge();
    const std::size_t before = span.bytes();
    if (!pool.large.shorten(span, bytes)) return nullptr;
    const std::size_t less = before - span.bytes();
    const std::size_t kept = span.requested_bytes.exchange(bytes, std::memory_order_release);
    count_large(pool, thread_registry().attach(pool.buckets),
                [&](LargeCounters& counted, Cache* cache) {
                    pool.totals().let_go(less);
                    add_release(counted.deallocated_bytes, less);
                    if (cache == nullptr) statistics::count_shared_large_loss(less);
                });
    void* const block = pool.large.address_of(span);
    if (pool.is_shown_to_tool()) platform::mark_resized({block, bytes, span.bytes()}, kept);
    events::record(TraceAction::resize, pool.id(), block, bytes);
    if (charge != nullptr) {
        charge->on_free(less);
    } else if (mark != nullptr) {
        watch_resized(pool, span, bytes);
    }
    keep_to_retention(pool, changes);
    return block;
}

}  // namespace

bool takes_any(const PoolParts&, const Request&) noexcept {
    return true;
}

void* take_last_pages(PoolParts& pool, std::size_t bytes) noexcept {
    if (bytes > pool.max_parked_bytes) return nullptr;
    Cache* const own = blocks::own_cache(pool.place);
    if (own == nullptr || !is_plain(pool, *own, bytes) || statistics::has_open_scope()) [[unlikely]]
        return nullptr;
    Span* const span = own->large.take_at_once(LargeBlocks::pages_for(bytes), pool.large);
    if (span == nullptr) [[unlikely]]
        return nullptr;
    return hand_out_parked(pool, *own, *span, bytes);
}

void* take_free_pages(PoolParts& pool, std::size_t bytes) noexcept {
    if (void* const block = take_last_pages(pool, bytes)) [[likely]]
        return block;
    return take_other_pages(pool, bytes);
}

bool is_possible_size(const Request& request, SlowPath& path) noexcept {
    // PageCount cannot represent the pages of larger blocks.
    if (std::max(request.bytes, request.alignment) <= pages::max_large_bytes) return true;
    path.refusal = {"address space", pages::max_large_bytes};
    path.refusal.advice = "no pool supports a larger block or a larger alignment";
    return false;
}

void* allocate_large(PoolParts& pool, const Request& request, SlowPath& path) noexcept {
    if (!is_possible_size(request, path)) return nullptr;
    return watch_pages(pool, request, path, allocate_whole_pages);
}

void* allocate_whole_pages(PoolParts& pool, Cache* cache, const Request& request,
                           SlowPath& path) noexcept {
    const auto [bytes, alignment, first_touch] = request;
    const pages::PageCount pages = LargeBlocks::pages_of(bytes);
    if (cache != nullptr && alignment <= pages::page_bytes) [[likely]] {
        if (Span* const span = cache->large.take(pages, pool.large)) {
            void* const block = hand_out_parked(pool, *cache, *span, bytes);
            statistics::look_at_scopes();
            return block;
        }
    }
    if (cache != nullptr && pages > LargeBlocks::join_above_pages &&
        cache->large.room_bytes() != 0) {
        if (alignment <= pages::page_bytes) {
            Span* const span = pool.large.take_cached(pages);
            if (span != nullptr) return hand_out(pool, cache, *span, bytes, Source::cache);
        }
        // Let free runs join before one is split. Its cost is negligible beside touching the block.
        cache->large.give_back(path);
    }
    const std::size_t grown_before = path.grown;
    const auto source = [&](bool from_cache) {
        if (from_cache) return Source::cache;
        return path.grown == grown_before ? Source::extents : Source::system;
    };
    path.may_grow = false;
    LargeBlocks::Taken taken = pool.large.allocate(bytes, alignment, path);
    path.may_grow = true;
    if (taken.span == nullptr) {
        blocks::give_back_own(pool.buckets, path);
        pool.buckets.drain(blocks::BucketDepot::Magazines::keep, path);
        if (pool.is_global()) (void)give_back_idle_plans(bytes);
        taken = pool.large.allocate(bytes, alignment, path);
    }
    if (taken.span != nullptr) [[likely]]
        return hand_out(pool, cache, *taken.span, bytes, source(taken.from_cache));
    Span* const tight = pool.large.allocate_tightly(bytes, alignment, path);
    return tight == nullptr ? nullptr : hand_out(pool, cache, *tight, bytes, source(false));
}

void prefault(PoolParts& pool, void* block, std::size_t bytes, const Changes& changes) noexcept {
    if (changes.fresh.count == 0 || bytes <= largest_block_bytes) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    const auto fresh =
        reinterpret_cast<std::uintptr_t>(pool.heap.space().address_of(changes.fresh.first));
    const std::uintptr_t from = std::max(begin, fresh);
    const std::uintptr_t to = std::min(base::align_up(begin + bytes, platform::page_bytes()),
                                       fresh + changes.fresh.count * pages::page_bytes);
    if (from >= to) return;
    const pages::PageNumber first = pool.heap.space().map().page_of(reinterpret_cast<void*>(from));
    pool.heap.fresh().prefault(
        {first, static_cast<pages::PageCount>((to - from) / pages::page_bytes)});
}

bool free_pages(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
                Changes& changes) noexcept {
    const bool is_block = entry.kind() == pages::PageKind::large_in_use && pool.owns(entry) &&
                          stated.agrees(bucket_count);
    if (!is_block || pool.large.address_of(*entry.span()) != p) [[unlikely]] {
        report_free(pool, p, stated);
        return false;
    }
    if (pool.is_checked() && !pool.large.end_use(p, entry, stated.has_size() ? stated.as.bytes : 0,
                                                 max_requested(pool, stated))) {
        report_free(pool, p, stated);
        return false;
    }
    return free_large(pool, *entry.span(), changes);
}

// If the thread's cache keeps the span, no function is called except on every 64th free.
bool free_large(PoolParts& pool, Span& span, Changes& changes) noexcept {
    if (span.is_marked) [[unlikely]] {
        base::BlockMark& mark = span.take_mark();
        const FreeCost cost(mark.watcher);
        mark.on_free(span.bytes());
    }
    const std::size_t bytes = span.bytes();
    Cache* const own = blocks::own_cache(pool.place);
    const bool kept = own != nullptr && !statistics::has_open_scope() &&
                      own->large.keep_at_once(span, pool.large);
    if (!kept) [[unlikely]]
        return free_large_slow(pool, span, changes);
    LargeCounters& counted = own->counters->large;
    add_release(counted.deallocations, 1);
    add_release(counted.deallocated_bytes, bytes);
    // Every 64 blocks, and every 8 MiB.
    const std::uint64_t freed = counted.deallocated_bytes.load(std::memory_order_relaxed);
    const bool is_time_to_look = counted.deallocations.load(std::memory_order_relaxed) % 64 == 0 ||
                                 ((freed ^ (freed - bytes)) >> 23) != 0;
    if (is_time_to_look) keep_to_retention(pool, changes);
    return is_time_to_look;
}

Found find_pages(PoolParts& pool, const void* p, PageEntry) noexcept {
    const std::lock_guard guard(pool.heap);
    // Records of other pools may be freed at any time.
    if (!pool.heap.space().is_lent_to(pool.number(), p)) return {};
    const pages::PageMap& map = pool.heap.space().map();
    const PageEntry entry = map.find(p, pool.number());
    if (entry.empty() || entry.is_bucket() || !entry.has_span()) return {};
    const Span& span = *entry.span();
    const std::uint64_t recorded = span.requested_bytes.load(std::memory_order_relaxed);
    const bool is_nothing = recorded == Span::nothing;
    Found found{.block = map.address_of(span.first_page),
                .usable = is_nothing ? 0 : span.bytes(),
                .requested = is_nothing ? 0 : recorded};
    // Only the first page's entry is kept current; those of granules and of the last page are set
    // once.
    const bool in_quarantine = pool.is_hardened() && recorded == 0;
    if (map.at(span.first_page).is_large_in_use() && !in_quarantine) {
        found.what = found.block == p ? Found::What::block : Found::What::interior;
    } else {
        found.what = Found::What::freed;
    }
    return found;
}

bool shrinks_in_place(const Found& found, std::size_t bytes) noexcept {
    return bytes > largest_block_bytes && bytes <= found.usable && bytes >= found.usable / 2;
}

void* resize_pages(PoolParts& pool, void* p, const Found& found, std::size_t bytes) noexcept {
    if (!shrinks_in_place(found, bytes)) return nullptr;
    // The next resize must find what this one requested.
    if (base::checks_sizes(pool.options.checks) || pool.is_shown_to_tool()) {
        pool.entry(p).span()->requested_bytes.store(bytes, std::memory_order_release);
    }
    return p;
}

void* resize_without_copy(PoolParts& pool, void* p, std::size_t bytes, SlowPath& path) noexcept {
    const std::size_t max_bytes = std::min(pool.options.max_allocation, pages::max_large_bytes);
    if (pool.is_hardened() || bytes > max_bytes || bytes <= largest_block_bytes) return nullptr;
    const PageEntry entry = pool.entry(p);
    if (!pool.owns(entry) || entry.kind() != pages::PageKind::large_in_use) return nullptr;
    Span& span = *entry.span();
    if (pool.large.address_of(span) != p) return nullptr;
    events::look_for_recorder();
    if (bytes <= span.bytes())
        return must_charge(pool, p, bytes) ? nullptr : shorten(pool, span, bytes, path);
    // A charged block moves, so that its growth is charged.
    if (is_charged(pool, p) || pool.is_in_scope()) return nullptr;
    void* longer = extend(pool, span, bytes, path);
    if (longer == nullptr) longer = move(pool, span, bytes, path);
    if (longer != nullptr) watch_resized(pool, span, bytes);
    return longer;
}

std::size_t recorded_bytes_of_pages(const void*, PageEntry entry) noexcept {
    return entry.is_large_in_use() ? entry.span()->bytes() : 0;
}

bool free_noted(PoolParts& pool, void* p, PageEntry, const Stated& stated,
                Changes& changes) noexcept {
    note_free(pool, p);
    // `find_noted` finds it again if `p` is not its beginning.
    if (pool.large.find_in_use(p) == nullptr) {
        report_free(pool, p, stated);
        return false;
    }
    const PageEntry entry = pool.entry(p);
    return pool.kinds.of(entry).free(pool, p, entry, stated, changes);
}

}  // namespace tensorpool::kinds
