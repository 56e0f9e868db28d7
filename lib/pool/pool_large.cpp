#include <algorithm>
#include <mutex>

#include "base/alignment.hpp"
#include "blocks/cache_large.hpp"
#include "blocks/thread_registry.hpp"
#include "platform/platform.hpp"
#include "platform/tools/memory_tools.hpp"
#include "pool/block_server.hpp"
#include "pool/pool.hpp"
#include "statistics/recorder_hooks.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

using pages::Changes;
using pages::SlowPath;
using pages::Span;

// Whether calls are recorded, or another process has requested a recording or a trim.
bool is_recorder_due() noexcept {
    return statistics::is_answer_due() || statistics::is_recording();
}

}  // namespace

// If the block that was freed last fits, no function is called.
void* Pool::allocate_pages(std::size_t bytes) {
    if (void* const block = take_last_pages(bytes)) [[likely]]
        return block;
    return allocate_other_pages(bytes);
}

void* Pool::take_free_pages(std::size_t bytes) noexcept {
    if (void* const block = take_last_pages(bytes)) [[likely]]
        return block;
    return take_other_pages(bytes);
}

void* Pool::allocate_other_pages(std::size_t bytes) {
    void* const block = take_other_pages(bytes);
    return block != nullptr ? block : allocate_or_throw(bytes, smallest_block_bytes);
}

inline void* Pool::take_last_pages(std::size_t bytes) noexcept {
    if (bytes > max_parked_bytes_) return nullptr;
    blocks::Cache* const own = blocks::own_cache(place_);
    if (own == nullptr || is_recorder_due() || statistics::has_open_scope() || is_in_scope() ||
        bytes > serving.max_unserved_bytes ||
        own->bytes_to_sample < static_cast<std::int64_t>(bytes)) [[unlikely]]
        return nullptr;
    const pages::PageCount pages = pages::LargeBlocks::pages_for(bytes);
    Span* const span = own->take_large_at_once(pages, large_);
    if (span == nullptr) [[unlikely]]
        return nullptr;
    return hand_out_parked(*own, *span, bytes);
}

void* Pool::take_other_pages(std::size_t bytes) noexcept {
    blocks::Cache* const own = blocks::own_cache(place_);
    const std::size_t max_bytes = std::min(options_.max_allocation, pages::max_large_bytes);
    if (own == nullptr || bytes > max_bytes || is_recorder_due() || is_in_scope() ||
        own->bytes_to_sample < static_cast<std::int64_t>(bytes)) {
        return nullptr;
    }
    if (bytes > serving.max_unserved_bytes || is_hardened()) return nullptr;
    if (bytes > blocks::LargeMagazine::max_bytes) {
        Span* const span = large_.take_cached(pages::LargeBlocks::pages_of(bytes));
        return span == nullptr ? nullptr : hand_out(own, *span, bytes, Source::cache);
    }
    Span* const span = own->take_large(pages::LargeBlocks::pages_for(bytes), large_);
    if (span == nullptr) return nullptr;
    void* const block = hand_out_parked(*own, *span, bytes);
    statistics::look_at_scopes();
    return block;
}

// A parked span stays counted as held, so the totals do not change.
inline void* Pool::hand_out_parked(blocks::Cache& cache, Span& span, std::size_t bytes) noexcept {
    span.requested_bytes.store(bytes, std::memory_order_release);
    LargeCounters& counted = cache.counters->large;
    cache.bytes_to_sample -= static_cast<std::int64_t>(bytes);
    add(counted.cache_hits, 1);
    add(counted.requested_bytes, bytes);
    add(counted.allocations, 1);
    add(counted.allocated_bytes, span.bytes());
    return large_.address_of(span);
}

void* Pool::allocate_large(std::size_t bytes, std::size_t alignment, SlowPath& path) noexcept {
    // PageCount cannot represent the pages of larger blocks.
    if (std::max(bytes, alignment) > pages::max_large_bytes) {
        path.refusal = {"address space", pages::max_large_bytes};
        path.refusal.advice = "no pool supports a larger block or a larger alignment";
        return nullptr;
    }
    blocks::Cache* const cache = blocks::thread_registry().attach(buckets_);
    Sampled sampled;
    if (cache != nullptr && cache->bytes_to_sample < static_cast<std::int64_t>(bytes))
        [[unlikely]] {
        sampled = sample(*cache, bytes, alignment);
        if (sampled.block != nullptr) return sampled.block;
    }
    void* const block = is_in_scope() ? allocate_charged_pages(cache, bytes, alignment, path)
                                      : allocate_whole_pages(cache, bytes, alignment, path);
    if (sampled.mean != 0) [[unlikely]] {
        if (block != nullptr) {
            profile_large(*cache, block, bytes, sampled);
        } else {
            owe_sample(*cache, bytes, sampled.mean);
        }
    }
    return block;
}

void* Pool::allocate_whole_pages(blocks::Cache* cache, std::size_t bytes, std::size_t alignment,
                                 SlowPath& path) noexcept {
    const pages::PageCount pages = pages::LargeBlocks::pages_of(bytes);
    if (cache != nullptr && alignment <= pages::page_bytes) [[likely]] {
        if (Span* const span = cache->take_large(pages, large_)) {
            void* const block = hand_out_parked(*cache, *span, bytes);
            statistics::look_at_scopes();
            return block;
        }
    }
    if (cache != nullptr && pages > pages::LargeBlocks::join_above_pages &&
        cache->may_park_large_bytes() != 0) {
        if (alignment <= pages::page_bytes) {
            Span* const span = large_.take_cached(pages);
            if (span != nullptr) return hand_out(cache, *span, bytes, Source::cache);
        }
        // Let free runs join before one is split. Its cost is negligible beside touching the block.
        cache->give_back_large(path);
    }
    const std::size_t grown_before = path.grown;
    const auto source = [&](bool from_cache) {
        if (from_cache) return Source::cache;
        return path.grown == grown_before ? Source::extents : Source::system;
    };
    path.may_grow = false;
    pages::LargeBlocks::Taken taken = large_.allocate(bytes, alignment, path);
    path.may_grow = true;
    if (taken.span == nullptr) {
        blocks::thread_registry().give_back_own(buckets_, path);
        buckets_.drain(blocks::Bucket::Magazines::keep, path);
        if (is_global()) (void)give_back_idle_plans(bytes);
        taken = large_.allocate(bytes, alignment, path);
    }
    if (taken.span != nullptr) [[likely]]
        return hand_out(cache, *taken.span, bytes, source(taken.from_cache));
    Span* const tight = large_.allocate_tightly(bytes, alignment, path);
    return tight == nullptr ? nullptr : hand_out(cache, *tight, bytes, source(false));
}

void* Pool::hand_out(blocks::Cache* own, Span& span, std::size_t bytes, Source source) noexcept {
    span.requested_bytes.store(bytes, std::memory_order_release);
    if (own != nullptr) own->bytes_to_sample -= static_cast<std::int64_t>(bytes);
    count_large(own, [&](LargeCounters& counted, blocks::Cache* cache) {
        hold(cache, span.bytes());
        add(counted.cache_hits, source == Source::cache ? 1 : 0);
        add(counted.system_misses, source == Source::system ? 1 : 0);
        add(counted.requested_bytes, bytes);
        add(counted.allocations, 1);
        add(counted.allocated_bytes, span.bytes());
        if (cache == nullptr) statistics::count_shared_large_allocation(bytes, span.bytes());
    });
    return heap_.space().address_of(span.first_page);
}

// Touches what was committed for this block, up to the requested bytes. If the system refuses, the
// caller's first access touches the pages.
void Pool::prefault(void* block, std::size_t bytes, const Changes& changes) noexcept {
    if (changes.fresh.count == 0 || bytes <= largest_block_bytes) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    const auto fresh =
        reinterpret_cast<std::uintptr_t>(heap_.space().address_of(changes.fresh.first));
    const std::uintptr_t from = std::max(begin, fresh);
    const std::uintptr_t to = std::min(base::align_up(begin + bytes, platform::page_bytes()),
                                       fresh + changes.fresh.count * pages::page_bytes);
    if (from >= to) return;
    const pages::PageNumber first = heap_.space().map().page_of(reinterpret_cast<void*>(from));
    heap_.prefault({first, static_cast<pages::PageCount>((to - from) / pages::page_bytes)});
}

void Pool::free_pages(void* p) noexcept {
    Span* const span = large_.find_in_use(p);
    if (span == nullptr || is_recorder_due()) [[unlikely]]
        return free_pages_slow(p);
    free_large(*span);
}

void Pool::free_pages_slow(void* p) noexcept {
    if (free_served(p) || free_guarded(p)) return;
    record_end_if_recording(p);
    const pages::PageEntry entry = heap_.space().map().at(p);
    if (entry.is_marked()) return free_marked(p, entry, {});
    if (Span* const span = large_span_of(p)) free_large(*span);
}

// If the thread's cache keeps the span, no function is called except on every 64th free.
void Pool::free_large(Span& span) noexcept {
    if (span.is_marked) [[unlikely]]
        return free_marked_large(span);
    const std::size_t bytes = span.bytes();
    blocks::Cache* const own = blocks::own_cache(place_);
    const bool kept =
        own != nullptr && !statistics::has_open_scope() && own->keep_large_at_once(span, large_);
    if (!kept) [[unlikely]]
        return free_large_slow(span);
    LargeCounters& counted = own->counters->large;
    add_release(counted.deallocations, 1);
    add_release(counted.deallocated_bytes, bytes);
    // Every 64 blocks, and every 8 MiB.
    const std::uint64_t freed = counted.deallocated_bytes.load(std::memory_order_relaxed);
    const bool is_time_to_look = counted.deallocations.load(std::memory_order_relaxed) % 64 == 0 ||
                                 ((freed ^ (freed - bytes)) >> 23) != 0;
    if (is_time_to_look || !may_skip_end()) [[unlikely]]
        look_after_free(is_time_to_look);
}

void Pool::look_after_free(bool is_time) noexcept {
    Changes changes;
    if (is_time) keep_to_retention(changes);
    end_slow_path(changes);
}

void Pool::free_large_slow(Span& span) noexcept {
    const std::size_t bytes = span.bytes();
    if (is_marked()) platform::mark_freed({large_.address_of(span), 0, bytes});
    blocks::Cache* own = blocks::own_cache(place_);
    if (own == nullptr) own = blocks::thread_registry().attach(buckets_);
    const bool kept = own != nullptr && bytes <= blocks::LargeMagazine::max_bytes &&
                      own->keep_large(span, large_);
    bool look = false;
    count_large(own, [&](LargeCounters& counted, blocks::Cache* cache) {
        add_release(counted.deallocations, 1);
        add_release(counted.deallocated_bytes, bytes);
        look = counted.deallocations.load(std::memory_order_relaxed) % 64 == 0;
        if (!kept) let_go(cache, bytes);
        if (cache == nullptr) statistics::count_shared_large_deallocation(bytes);
    });
    Changes changes;
    if (!kept) large_.free(span, changes);
    if (look) keep_to_retention(changes);
    end_slow_path(changes);
}

void* Pool::lengthen(void* p, std::size_t bytes) noexcept {
    if (is_hardened() || bytes > std::min(options_.max_allocation, pages::max_large_bytes))
        return nullptr;
    const pages::PageEntry entry = heap_.space().map().at(p);
    const bool ours = entry.pool_number() == heap_.pool_number();
    if (!ours || entry.kind() != pages::PageKind::large_in_use) return nullptr;
    const void* const begin = heap_.space().address_of(entry.span()->first_page);
    // A charged block moves, so that its growth is charged.
    const bool charges = charge_of(p) != nullptr || is_in_scope();
    if (begin != p || bytes <= entry.span()->bytes() || charges) return nullptr;
    statistics::look_for_recorder();
    SlowPath path;
    void* longer = extend(*entry.span(), bytes, path);
    if (longer == nullptr) longer = move(*entry.span(), bytes, path);
    if (longer != nullptr) profile_resized(*entry.span(), bytes);
    end_slow_path(path);
    return longer;
}

// The added bytes are counted for the existing block, not as another block.
void* Pool::extend(Span& span, std::size_t bytes, SlowPath& path) noexcept {
    const std::size_t before = span.bytes();
    blocks::Cache* const own = blocks::thread_registry().attach(buckets_);
    if (!large_.extend(span, bytes, path)) {
        // The span behind it may lie in this thread's magazine.
        const bool joined =
            large_.waits_behind(span) && own != nullptr && own->give_back_large(path) != 0;
        if (!joined || !large_.extend(span, bytes, path)) return nullptr;
    }
    const std::size_t more = span.bytes() - before;
    const std::size_t kept = span.requested_bytes.exchange(bytes, std::memory_order_release);
    count_large(own, [&](LargeCounters& counted, blocks::Cache* cache) {
        hold(cache, more);
        add(counted.requested_bytes, bytes - before);
        add(counted.allocated_bytes, more);
        if (cache == nullptr) statistics::count_shared_large_growth(bytes - before, more);
    });
    void* const block = heap_.space().address_of(span.first_page);
    if (is_marked()) platform::mark_resized({block, bytes, span.bytes()}, kept);
    statistics::record(TraceAction::resize, id(), block, bytes);
    return block;
}

// Counted as one block freed and another allocated. Only the difference counts as newly held.
void* Pool::move(Span& span, std::size_t bytes, SlowPath& path) noexcept {
    const std::size_t before = span.bytes();
    void* const old = heap_.space().address_of(span.first_page);
    Span* const left = large_.move(span, bytes, path);
    if (left == nullptr) return nullptr;
    statistics::record(TraceAction::deallocate, id(), old, before);
    if (is_marked()) platform::mark_freed({old, 0, before});
    heap_.take_left(*left);
    span.requested_bytes.store(bytes, std::memory_order_release);
    count_large(blocks::thread_registry().attach(buckets_),
                [&](LargeCounters& counted, blocks::Cache* cache) {
                    hold(cache, span.bytes() - before);
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
    void* const block = heap_.space().address_of(span.first_page);
    if (is_marked()) platform::mark_allocated({block, bytes, span.bytes()});
    if (is_marked()) platform::mark_defined(block, std::min(before, bytes));
    statistics::record(TraceAction::allocate, id(), block, bytes, smallest_block_bytes);
    return block;
}

template <class Function>
void Pool::count_large(blocks::Cache* cache, Function function) noexcept {
    if (cache != nullptr) [[likely]] {
        function(cache->counters->large, cache);
        statistics::look_at_scopes();
        return;
    }
    const std::lock_guard guard(counters_.shared_mutex());
    function(counters_.shared().large, nullptr);
}

// A guarded block counts as a block of whole pages.
void Pool::count_guarded_allocation(std::size_t requested, std::size_t taken) noexcept {
    count_large(blocks::own_cache(place_), [&](LargeCounters& counted, blocks::Cache* cache) {
        hold(cache, taken);
        add(counted.requested_bytes, requested);
        add(counted.allocations, 1);
        add(counted.allocated_bytes, taken);
        if (cache == nullptr) statistics::count_shared_large_allocation(requested, taken);
    });
}

// Corrects the requested bytes of an allocation that was counted with more.
void Pool::count_large_request_as(std::size_t bytes, std::size_t counted_bytes) noexcept {
    count_large(blocks::own_cache(place_), [&](LargeCounters& counted, blocks::Cache*) {
        add(counted.requested_bytes, bytes - counted_bytes);
    });
}

// Counts a free after which the block stays held.
void Pool::count_large_free(std::size_t bytes) noexcept {
    count_large(blocks::own_cache(place_), [&](LargeCounters& counted, blocks::Cache* cache) {
        add_release(counted.deallocations, 1);
        add_release(counted.deallocated_bytes, bytes);
        if (cache == nullptr) statistics::count_shared_large_deallocation(bytes);
    });
}

void Pool::count_hardened_free(unsigned bucket) noexcept {
    if (blocks::Cache* const cache = attach(buckets_)) {
        add_release(cache->counters->buckets[bucket].deallocations, 1);
        return;
    }
    const std::lock_guard guard(counters_.shared_mutex());
    add_release(counters_.shared().buckets[bucket].deallocations, 1);
    statistics::count_shared_deallocation(buckets_[bucket].row(), bucket_bytes(bucket));
}

void Pool::count_guarded_deallocation(std::size_t taken) noexcept {
    count_large(blocks::own_cache(place_), [&](LargeCounters& counted, blocks::Cache* cache) {
        add_release(counted.deallocations, 1);
        add_release(counted.deallocated_bytes, taken);
        let_go(cache, taken);
        if (cache == nullptr) statistics::count_shared_large_deallocation(taken);
    });
}

// A thread that has credit for the bytes changes no word that threads share.
void Pool::hold(blocks::Cache* cache, std::size_t bytes) noexcept {
    if (cache != nullptr && bytes <= blocks::Cache::max_credit_bytes) {
        cache->charge(bytes);
    } else {
        record_->totals.hold(bytes);
    }
}

void Pool::let_go(blocks::Cache* cache, std::size_t bytes) noexcept {
    if (cache != nullptr && bytes <= blocks::Cache::max_credit_bytes) {
        cache->refund(bytes);
    } else {
        record_->totals.let_go(bytes);
    }
}

}  // namespace abi_2
}  // namespace tensorpool::detail
