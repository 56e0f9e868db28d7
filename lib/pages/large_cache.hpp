#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "pages/large_sizes.hpp"
#include "pages/span.hpp"
#include "statistics/segment/pool_totals.hpp"

namespace tensorpool::pages {

/// A cache of free, committed large blocks by size. `take` and `keep` cost one atomic exchange each
/// and no lock. The thread that exchanges a span out of the cache owns it. Cached spans have the
/// kind `large_cached`.
class LargeCache {
public:
    explicit LargeCache(statistics::PoolTotals& totals) noexcept : totals_(totals) {}

    /// Takes a span of exactly `pages` pages, which must be a rounded size. Returns nullptr if
    /// there is none.
    Span* take(PageCount pages) noexcept;
    /// Puts a span into the cache. Returns false, and leaves it to the caller, if the cache has no
    /// room for another span of its size.
    bool keep(Span& span) noexcept;
    /// Takes out all spans that were freed in a period before `period`, and calls `function` with
    /// each.
    template <class Function>
    void empty(std::uint32_t period, Function function) noexcept;

private:
    static constexpr unsigned ways = 4;
    using Way = std::atomic<Span*>;
    using Ways = std::array<Way, ways>;
    static constexpr unsigned hint_words = (large_class_count + 63) / 64;

    Span* take_out(Way& way) noexcept;
    bool put_in(Way& way, Span& span) noexcept;
    void hint(unsigned large_class) noexcept;

    statistics::PoolTotals& totals_;
    // The release of `put_in` pairs with the acquire of `take_out`: changes to the span's record by
    // the thread that frees it come before changes by the thread that takes it.
    std::array<Ways, large_class_count> ways_ = {};
    // One bit for each class, clear only if the class holds no span. It is set after a way is
    // filled and cleared before the ways are searched, so no span is missed permanently. `keep` and
    // `empty` access ways and hints in opposite orders, so both are sequentially consistent, which
    // costs nothing beside the exchange on x86-64.
    std::array<std::atomic<std::uint64_t>, hint_words> hints_ = {};
};

inline Span* LargeCache::take(PageCount pages) noexcept {
    for (Way& way : ways_[large_class_of(pages)]) {
        if (Span* const span = take_out(way)) return span;
    }
    return nullptr;
}

inline bool LargeCache::keep(Span& span) noexcept {
    const unsigned large_class = large_class_of(span.pages);
    for (Way& way : ways_[large_class]) {
        if (!put_in(way, span)) continue;
        hint(large_class);
        return true;
    }
    return false;
}

inline Span* LargeCache::take_out(Way& way) noexcept {
    if (way.load() == nullptr) return nullptr;
    Span* const span = way.exchange(nullptr, std::memory_order_acquire);
    if (span != nullptr) {
        totals_.large_cached_bytes.fetch_sub(span->bytes(), std::memory_order_relaxed);
    }
    return span;
}

inline bool LargeCache::put_in(Way& way, Span& span) noexcept {
    if (way.load(std::memory_order_relaxed) != nullptr) return false;
    // Counted before it can be taken out, so that the count never becomes negative.
    const std::size_t bytes = span.bytes();
    totals_.large_cached_bytes.fetch_add(bytes, std::memory_order_relaxed);
    Span* expected = nullptr;
    if (way.compare_exchange_strong(expected, &span, std::memory_order_seq_cst,
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
            for (Way& way : ways_[word * 64 + static_cast<unsigned>(std::countr_zero(bits))]) {
                Span* const span = take_out(way);
                if (span != nullptr && (span->period < period || !keep(*span))) function(*span);
            }
        }
    }
}

}  // namespace tensorpool::pages
