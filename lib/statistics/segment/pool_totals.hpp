#pragma once

#include <cstdint>

#include <tensorpool/detail/counters.hpp>

#include "base/atomics.hpp"

namespace tensorpool::statistics {

using detail::Counter;

/// What is counted once for a pool, beside what each thread counts. No pointers: it lies in the
/// shared segment. Anybody reads it at any time; who writes a word stands beside it.
struct alignas(64) PoolTotals {
    // Under the page heap's lock.
    Counter capacity_bytes;
    Counter reserved_bytes;
    Counter free_bytes;
    Counter peak_capacity_bytes;
    Counter peak_reserved_bytes;
    Counter growths;
    Counter grown_bytes;
    Counter give_backs;
    Counter given_back_bytes;
    // By atomic addition, on slow paths only.
    Counter failures[6];  // by LimitKind
    Counter lost_bytes;
    Counter large_cached_bytes;
    Counter record_bytes;
    // Under each bucket's lock.
    Counter bucket_capacity_bytes[detail::bucket_count];
    Counter bucket_out_blocks[detail::bucket_count];  // not at home: in use, parked, in the depot

    // In a line of their own: all threads add to it now and then. Bytes that left the central
    // lists, in use or parked, and what threads took ahead: never less than what is in use.
    alignas(64) Counter held_bytes;
    Counter peak_held_bytes;

    /// `bytes` more left the central lists.
    void hold(std::uint64_t bytes) noexcept {
        const auto now = held_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
        // Below 0 in the child of a fork that gives back what another thread took while the segment
        // was copied: that was no peak.
        if (static_cast<std::int64_t>(now) > 0) base::raise_to(peak_held_bytes, now);
    }
    void let_go(std::uint64_t bytes) noexcept {
        held_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    }
};

}  // namespace tensorpool::statistics
