#pragma once

#include <cstddef>
#include <cstdint>

#include <tensorpool/detail/counters.hpp>

namespace tensorpool::statistics {

/// Adds counters to counters that several records share, by their growth since the last time. Used
/// for objects without a record in the segment. One FoldedWords object is not thread-safe. The
/// shared counters are added to atomically.
template <std::size_t words>
class FoldedWords {
public:
    /// Adds the change of each counter since the last call. Counters may also shrink: the loss is
    /// then subtracted, modulo 2^64.
    void fold(const detail::Counter* now, detail::Counter* into) noexcept {
        for (std::size_t i = 0; i < words; ++i) {
            add(into[i], now[i].load(std::memory_order_relaxed), folded_[i]);
        }
    }
    /// Subtracts everything that was added.
    void unfold(detail::Counter* into) noexcept {
        for (std::size_t i = 0; i < words; ++i) add(into[i], 0, folded_[i]);
    }

private:
    // Relaxed: the sums order nothing.
    static void add(detail::Counter& into, std::uint64_t now, std::uint64_t& folded) noexcept {
        if (now == folded) return;
        into.fetch_add(now - folded, std::memory_order_relaxed);
        folded = now;
    }

    std::uint64_t folded_[words] = {};
};

/// Views a record as an array of its counters.
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
