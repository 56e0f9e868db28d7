#pragma once

#include <atomic>
#include <cstdint>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/detail/counters.hpp>

#include "base/atomics.hpp"

namespace tensorpool::statistics {

using detail::Counter;

/// What is counted of an arena or of a scratch, apart from what is in use. Written by whoever
/// changes its memory, who is alone; read by anybody. No pointers: it lies in the shared
/// segment.
struct ArenaTotals {
    Counter capacity_bytes = 0;
    Counter peak_capacity_bytes = 0;
    Counter reserved_bytes = 0;
    Counter limit_bytes = 0;      // how far the capacity may grow; 0: no limit
    Counter peak_used_bytes = 0;  // as of the last release
    Counter growths = 0;
    Counter grown_bytes = 0;
    Counter give_backs = 0;
    Counter given_back_bytes = 0;
    Counter refusals =
        0;  // by atomic addition: the one word that several threads may write at once

    void count_growth(std::uint64_t bytes) noexcept {
        detail::add(capacity_bytes, bytes);
        base::raise_to(peak_capacity_bytes, capacity_bytes.load(std::memory_order_relaxed));
        detail::add(growths, 1);
        detail::add(grown_bytes, bytes);
    }
    void count_give_back(std::uint64_t bytes) noexcept {
        capacity_bytes.store(capacity_bytes.load(std::memory_order_relaxed) - bytes,
                             std::memory_order_relaxed);
        detail::add(give_backs, 1);
        detail::add(given_back_bytes, bytes);
    }
    void count_refusal() noexcept { refusals.fetch_add(1, std::memory_order_relaxed); }

    /// Fills in the figures above. Relaxed: each is a figure of its own.
    void add_to(ArenaStatistics& figures) const noexcept {
        const auto read = [](const Counter& counter) {
            return counter.load(std::memory_order_relaxed);
        };
        figures.capacity_bytes = read(capacity_bytes);
        figures.peak_capacity_bytes = read(peak_capacity_bytes);
        figures.reserved_bytes = read(reserved_bytes);
        figures.limit_bytes = read(limit_bytes);
        figures.growths = read(growths);
        figures.grown_bytes = read(grown_bytes);
        figures.give_backs = read(give_backs);
        figures.given_back_bytes = read(given_back_bytes);
        figures.refusals = read(refusals);
    }
};

}  // namespace tensorpool::statistics
