#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "pages/large_sizes.hpp"
#include "pages/span.hpp"
#include "statistics/metrics/pool_metrics.hpp"

namespace tensorpool::pages {

/// Free large blocks by size, committed and warm. Taking and keeping is one atomic exchange; no
/// lock. A span in a slot is nobody's; who exchanges it out owns it. Spans here are `large_cached`.
class LargeCache {
public:
    explicit LargeCache(statistics::PoolTotals& totals) noexcept : totals_(totals) {}

    /// A span of just this many pages (a rounded size), or nullptr.
    Span* take(PageCount pages) noexcept;
    /// False when there is no room for one more of its size: then it is still the caller's.
    bool keep(Span& span) noexcept;
    /// Takes out all spans freed in a period before `period`, and hands them to `function`.
    template <class Function>
    void empty(std::uint32_t period, Function function) noexcept;

private:
    static constexpr unsigned ways = 4;
    using Slot = std::atomic<Span*>;
    using Ways = std::array<Slot, ways>;
    static constexpr unsigned hint_words = (large_class_count + 63) / 64;

    Span* take_out(Slot& slot) noexcept;
    bool put_in(Slot& slot, Span& span) noexcept;
    void hint(unsigned large_class) noexcept;

    statistics::PoolTotals& totals_;
    // Acquire and release: what the one who freed did to the span's record comes before what the
    // one who takes it does.
    std::array<Ways, large_class_count> slots_ = {};
    // A bit for each class that may hold a span; clear only where it holds none. Slot and hint are
    // written and then read the other way around by `keep` and `empty`, so both in one total order
    // (which on x86-64 costs nothing beside the exchange). Set after the slot
    // is filled and cleared before the slots are looked through: no span is overlooked for good.
    std::array<std::atomic<std::uint64_t>, hint_words> hints_ = {};
};

inline Span* LargeCache::take(PageCount pages) noexcept {
    for (Slot& slot : slots_[large_class_of(pages)]) {
        if (Span* const span = take_out(slot)) return span;
    }
    return nullptr;
}

inline bool LargeCache::keep(Span& span) noexcept {
    const unsigned large_class = large_class_of(span.pages);
    for (Slot& slot : slots_[large_class]) {
        if (!put_in(slot, span)) continue;
        hint(large_class);
        return true;
    }
    return false;
}

inline Span* LargeCache::take_out(Slot& slot) noexcept {
    if (slot.load() == nullptr) return nullptr;
    Span* const span = slot.exchange(nullptr, std::memory_order_acquire);
    if (span != nullptr) {
        totals_.large_cached_bytes.fetch_sub(span->bytes(), std::memory_order_relaxed);
    }
    return span;
}

inline bool LargeCache::put_in(Slot& slot, Span& span) noexcept {
    if (slot.load(std::memory_order_relaxed) != nullptr) return false;
    // Counted before it can be taken out, so that the figure never reads negative.
    const std::size_t bytes = span.bytes();
    totals_.large_cached_bytes.fetch_add(bytes, std::memory_order_relaxed);
    Span* free_slot = nullptr;
    if (slot.compare_exchange_strong(free_slot, &span, std::memory_order_seq_cst,
                                     std::memory_order_relaxed)) {
        return true;
    }
    totals_.large_cached_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
}

inline void LargeCache::hint(unsigned large_class) noexcept {
    std::atomic<std::uint64_t>& word = hints_[large_class / 64];
    const std::uint64_t bit = std::uint64_t{1} << large_class % 64;
    if ((word.load() & bit) == 0) {
        word.fetch_or(bit, std::memory_order_relaxed);
    }
}

template <class Function>
void LargeCache::empty(std::uint32_t period, Function function) noexcept {
    for (unsigned word = 0; word < hint_words; ++word) {
        if (hints_[word].load(std::memory_order_relaxed) == 0) continue;
        for (std::uint64_t bits = hints_[word].exchange(0); bits != 0; bits &= bits - 1) {
            for (Slot& slot : slots_[word * 64 + static_cast<unsigned>(std::countr_zero(bits))]) {
                Span* const span = take_out(slot);
                if (span != nullptr && (span->period < period || !keep(*span))) function(*span);
            }
        }
    }
}

}  // namespace tensorpool::pages
