#pragma once

#include <cstdint>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/device_statistics.hpp>

#include "base/atomics.hpp"

namespace tensorpool::statistics {

using detail::Counter;

/// What one stream did with one allocator. Written under the stream's lock, with plain stores;
/// anybody reads it at any time, frees before allocations. No pointers: it lies in the shared
/// segment. Bytes in use are those allocated less those deallocated.
struct alignas(64) DeviceStreamCounters {
    Counter allocations;
    Counter requested_bytes;
    Counter allocated_bytes;
    Counter deallocations;
    Counter deallocated_bytes;
    Counter deallocated_requested_bytes;
    Counter parked_hits;   // allocations that a block freed lately on this stream served
    Counter parked_bytes;  // free, lately freed, ready for this stream
};
static_assert(sizeof(DeviceStreamCounters) == 64);

/// What is counted once for an allocator. Written under its lock; read by anybody.
struct alignas(64) DeviceTotals {
    Counter capacity_bytes;
    Counter peak_capacity_bytes;
    Counter address_bytes;
    Counter split_bytes;
    Counter captured_bytes;
    Counter limit_bytes;
    Counter soft_limit_bytes;
    Counter slabs;
    Counter free_blocks;
    Counter deferred_bytes;
    Counter deferred_blocks;
    Counter streams;
    // Blocks that left the sets of free ones, in use or parked: never less than what is in use.
    Counter held_bytes;
    Counter peak_held_bytes;
    Counter peak_active_bytes;  // held and deferred
    Counter free_hits;
    Counter growths;
    Counter grown_bytes;
    Counter give_backs;
    Counter given_back_bytes;
    Counter cross_stream_uses;
    Counter events;
    Counter synchronizations;
    Counter pressures;
    Counter failures;
    Counter spare[7];

    void count_growth(std::uint64_t bytes) noexcept {
        detail::add(capacity_bytes, bytes);
        base::raise_to(peak_capacity_bytes, capacity_bytes.load(std::memory_order_relaxed));
        detail::add(growths, 1);
        detail::add(grown_bytes, bytes);
    }
    void count_give_back(std::uint64_t bytes) noexcept {
        detail::add(capacity_bytes, 0 - bytes);
        detail::add(give_backs, 1);
        detail::add(given_back_bytes, bytes);
    }
    /// `bytes` more left the sets.
    void hold(std::uint64_t bytes) noexcept {
        detail::add(held_bytes, bytes);
        raise_peaks();
    }
    void let_go(std::uint64_t bytes) noexcept { detail::add(held_bytes, 0 - bytes); }
    /// Freed, and not yet for anybody: moves from held to deferred, so no peak rises.
    void defer(std::uint64_t bytes) noexcept {
        detail::add(deferred_bytes, bytes);
        detail::add(deferred_blocks, 1);
        let_go(bytes);
    }
    void end_deferral(std::uint64_t bytes) noexcept {
        detail::add(deferred_bytes, 0 - bytes);
        detail::add(deferred_blocks, ~std::uint64_t{0});
    }

private:
    void raise_peaks() noexcept {
        const std::uint64_t held = held_bytes.load(std::memory_order_relaxed);
        base::raise_to(peak_held_bytes, held);
        base::raise_to(peak_active_bytes, held + deferred_bytes.load(std::memory_order_relaxed));
    }
};
static_assert(sizeof(DeviceTotals) == 256);

}  // namespace tensorpool::statistics
