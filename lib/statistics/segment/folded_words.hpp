#pragma once

#include <cstddef>
#include <cstdint>

#include <tensorpool/detail/counters.hpp>

namespace tensorpool::statistics {

/// Adds words that lie elsewhere up in words that several such share, by what they grew since the
/// last time. For records without a place in the segment. Not thread-safe for one of these; the
/// words that are shared are added to atomically.
template <std::size_t words>
class FoldedWords {
public:
    /// Words may shrink: then what they lost is taken away, modulo 2^64.
    void fold(const detail::Counter* now, detail::Counter* into) noexcept {
        for (std::size_t i = 0; i < words; ++i) {
            add(into[i], now[i].load(std::memory_order_relaxed), folded_[i]);
        }
    }
    /// Takes away all that was added.
    void unfold(detail::Counter* into) noexcept {
        for (std::size_t i = 0; i < words; ++i) add(into[i], 0, folded_[i]);
    }

private:
    // Relaxed: figures that order nothing.
    static void add(detail::Counter& into, std::uint64_t now, std::uint64_t& folded) noexcept {
        if (now == folded) return;
        into.fetch_add(now - folded, std::memory_order_relaxed);
        folded = now;
    }

    std::uint64_t folded_[words] = {};
};

/// A record as its words.
template <class Record>
inline constexpr std::size_t words_of = sizeof(Record) / sizeof(detail::Counter);
template <class Record>
detail::Counter* as_words(Record& record) noexcept {
    return reinterpret_cast<detail::Counter*>(&record);
}
template <class Record>
const detail::Counter* as_words(const Record& record) noexcept {
    return reinterpret_cast<const detail::Counter*>(&record);
}

}  // namespace tensorpool::statistics
