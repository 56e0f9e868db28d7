#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "pages/large_sizes.hpp"
#include "pages/span.hpp"
#include "statistics/pool_totals.hpp"

namespace tensorpool::pages {

/// Free large blocks by size, committed and warm. Taking and keeping is one atomic exchange; no
/// lock. What is kept belongs to whoever exchanges it out. Spans here are `large_cached`.
class LargeCache {
public:
    explicit LargeCache(statistics::PoolTotals& totals) noexcept : totals_(totals) {}

    /// A span of just this many pages (a rounded size), or nullptr.
    Span* take(PageCount pages) noexcept;
    /// False when there is no room for one more of its size: then it is still the caller's.
    bool keep(Span& span) noexcept;
    /// Takes out all spans freed in a period before `period`, one by one.
    template <class Function>
    void empty(std::uint32_t period, Function function) noexcept;

private:
    static constexpr unsigned ways = 4;
    using Slot = std::atomic<Span*>;

    Span* take_out(Slot& slot) noexcept;
    bool put_in(Slot& slot, Span& span) noexcept;

    statistics::PoolTotals& totals_;
    // Acquire and release: what the one who freed did to the span's record comes before what the
    // one who takes it does.
    std::array<std::array<Slot, ways>, large_class_count> slots_ = {};
};

inline Span* LargeCache::take(PageCount pages) noexcept {
    for (Slot& slot : slots_[large_class_of(pages)]) {
        if (slot.load(std::memory_order_relaxed) == nullptr) continue;
        if (Span* const span = take_out(slot); span != nullptr) return span;
    }
    return nullptr;
}

inline bool LargeCache::keep(Span& span) noexcept {
    for (Slot& slot : slots_[large_class_of(span.pages)]) {
        if (slot.load(std::memory_order_relaxed) == nullptr && put_in(slot, span)) return true;
    }
    return false;
}

inline Span* LargeCache::take_out(Slot& slot) noexcept {
    Span* const span = slot.exchange(nullptr, std::memory_order_acquire);
    if (span != nullptr) {
        totals_.large_cached_bytes.fetch_sub(span->bytes(), std::memory_order_relaxed);
    }
    return span;
}

inline bool LargeCache::put_in(Slot& slot, Span& span) noexcept {
    // Counted before it can be taken out, so that the figure never reads negative.
    totals_.large_cached_bytes.fetch_add(span.bytes(), std::memory_order_relaxed);
    Span* free_slot = nullptr;
    if (slot.compare_exchange_strong(free_slot, &span, std::memory_order_release,
                                     std::memory_order_relaxed)) {
        return true;
    }
    totals_.large_cached_bytes.fetch_sub(span.bytes(), std::memory_order_relaxed);
    return false;
}

template <class Function>
void LargeCache::empty(std::uint32_t period, Function function) noexcept {
    for (auto& size : slots_) {
        for (Slot& slot : size) {
            if (slot.load(std::memory_order_relaxed) == nullptr) continue;
            Span* const span = take_out(slot);
            if (span == nullptr) continue;
            if (span->period < period || !put_in(slot, *span)) function(*span);
        }
    }
}

}  // namespace tensorpool::pages
