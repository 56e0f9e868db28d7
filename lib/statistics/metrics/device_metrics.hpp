#pragma once

#include <cstdint>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/device_statistics.hpp>

#include "base/atomics.hpp"
#include "statistics/metrics/metric.hpp"

namespace tensorpool::statistics {

/// What one stream did with one allocator. Written under the stream's lock with plain stores; any
/// thread or process may read it at any time, frees before allocations. Contains no pointers
/// because it lies in the shared segment. The bytes in use are the allocated bytes minus the
/// deallocated bytes.
struct alignas(64) DeviceStreamCounters {
    Counter allocations;
    Counter requested_bytes;
    Counter allocated_bytes;
    Counter deallocations;
    Counter deallocated_bytes;
    Counter deallocated_requested_bytes;
    Counter parked_hits;   // allocations served by a block that was recently freed on this stream
    Counter parked_bytes;  // free bytes in recently freed blocks, ready for this stream
};
static_assert(sizeof(DeviceStreamCounters) == 64);

/// Counters that exist once for each allocator. Written under its lock; any thread or process may
/// read them.
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
    // Bytes of blocks that are in use or parked, and therefore not in the sets of free blocks.
    // Never less than the bytes in use.
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
    /// Counts `bytes` more that left the sets of free blocks.
    void hold(std::uint64_t bytes) noexcept {
        detail::add(held_bytes, bytes);
        raise_peaks();
    }
    void let_go(std::uint64_t bytes) noexcept { detail::add(held_bytes, 0 - bytes); }
    /// Counts a freed block that cannot be reused yet. It moves from held to deferred, so no peak
    /// rises.
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

/// Metrics of a device allocator, with PyTorch's name for each.
template <>
struct Metrics<DeviceStatistics> {
    using enum MetricKind;
    using Of = DeviceStatistics;
    using OfStream = DeviceStreamCounters;
    static constexpr const char* of = "device";
    static constexpr Metric<Of, DeviceTotals, OfStream> all[] = {
        {"id", &Of::id, "number", gauge,
         "Number that no other pool, arena or device allocator of the process has."},
        {"in_use_bytes",
         &Of::in_use_bytes,
         "bytes",
         gauge,
         "Bytes of blocks that callers hold.",
         "tensorpool_device_block_bytes",
         {},
         "allocated_bytes.all.current"},
        {"peak_in_use_bytes", &Of::peak_in_use_bytes, "bytes", peak,
         "Highest number of bytes in use at once, including bytes parked for streams.",
         "tensorpool_device_peak_block_bytes", &DeviceTotals::peak_held_bytes,
         "allocated_bytes.all.peak"},
        {"requested_in_use_bytes",
         &Of::requested_in_use_bytes,
         "bytes",
         gauge,
         "Bytes requested for the blocks that callers hold.",
         "tensorpool_device_requested_block_bytes",
         {},
         "requested_bytes.all.current"},
        {"deferred_bytes", &Of::deferred_bytes, "bytes", gauge,
         "Freed bytes that wait until streams have finished with them.",
         "tensorpool_device_deferred_bytes", &DeviceTotals::deferred_bytes, "active_pending_free"},
        {"peak_active_bytes", &Of::peak_active_bytes, "bytes", peak,
         "Highest number of bytes in use and deferred at once.",
         "tensorpool_device_peak_active_bytes", &DeviceTotals::peak_active_bytes,
         "active_bytes.all.peak"},
        {"capacity_bytes", &Of::capacity_bytes, "bytes", gauge,
         "Bytes of all slabs, free memory included.", "tensorpool_device_capacity_bytes",
         &DeviceTotals::capacity_bytes, "reserved_bytes.all.current"},
        {"peak_capacity_bytes", &Of::peak_capacity_bytes, "bytes", peak, "Highest capacity.",
         "tensorpool_device_peak_capacity_bytes", &DeviceTotals::peak_capacity_bytes,
         "reserved_bytes.all.peak"},
        {"address_bytes", &Of::address_bytes, "bytes", gauge,
         "Address space of slabs that can grow, which takes no memory.",
         "tensorpool_device_address_bytes", &DeviceTotals::address_bytes},
        {"free_bytes", &Of::free_bytes, "bytes", gauge,
         "Bytes of slabs that are neither in use nor deferred.", "tensorpool_device_free_bytes"},
        {"split_bytes", &Of::split_bytes, "bytes", gauge,
         "Free bytes in slabs that are partly in use.", "tensorpool_device_split_bytes",
         &DeviceTotals::split_bytes, "inactive_split_bytes.all.current"},
        {"parked_bytes", &Of::parked_bytes, "bytes", gauge,
         "Free bytes in recently freed blocks that are ready for their stream.",
         "tensorpool_device_parked_bytes", &OfStream::parked_bytes},
        {"captured_bytes", &Of::captured_bytes, "bytes", gauge,
         "Bytes of slabs that are reserved for captured graphs.",
         "tensorpool_device_captured_bytes", &DeviceTotals::captured_bytes},
        {"limit_bytes", &Of::limit_bytes, "bytes", gauge,
         "Maximum of the capacity; 0 if there is no limit.", "", &DeviceTotals::limit_bytes},
        {"soft_limit_bytes", &Of::soft_limit_bytes, "bytes", gauge,
         "Capacity above which free blocks are returned; 0 if there is no such limit.", "",
         &DeviceTotals::soft_limit_bytes},
        {"slabs", &Of::slabs, "slabs", gauge, "Number of slabs.", "tensorpool_device_slabs",
         &DeviceTotals::slabs, "segment.all.current"},
        {"free_blocks", &Of::free_blocks, "blocks", gauge,
         "Free runs of bytes, not counting parked blocks.", "tensorpool_device_free_blocks",
         &DeviceTotals::free_blocks, "inactive"},
        {"deferred_blocks", &Of::deferred_blocks, "blocks", gauge,
         "Freed blocks that wait until streams have finished with them.",
         "tensorpool_device_deferred_blocks", &DeviceTotals::deferred_blocks,
         "active_pending_free"},
        {"streams", &Of::streams, "streams", gauge, "Streams that have used the allocator.",
         "tensorpool_device_streams", &DeviceTotals::streams},
        {"allocations", &Of::allocations, "calls", total, "Blocks allocated.", "",
         &OfStream::allocations, "allocation.all.allocated"},
        {"deallocations", &Of::deallocations, "calls", total, "Blocks freed.",
         "tensorpool_device_deallocations_total", read_first(&OfStream::deallocations),
         "allocation.all.freed"},
        {"requested_bytes", &Of::requested_bytes, "bytes", total,
         "Bytes requested by all allocations.", "tensorpool_device_requested_bytes_total",
         &OfStream::requested_bytes, "requested_bytes.all.allocated"},
        {"allocated_bytes", &Of::allocated_bytes, "bytes", total,
         "Bytes allocated; the excess over the requested bytes is due to rounding.",
         "tensorpool_device_allocated_bytes_total", &OfStream::allocated_bytes,
         "allocated_bytes.all.allocated"},
        {"deallocated_bytes", &Of::deallocated_bytes, "bytes", total, "Bytes of the blocks freed.",
         "tensorpool_device_deallocated_bytes_total", read_first(&OfStream::deallocated_bytes),
         "allocated_bytes.all.freed"},
        {"parked_hits", &Of::parked_hits, "calls", total,
         "Allocations served by a block recently freed on the same stream.", "",
         &OfStream::parked_hits},
        {"free_hits", &Of::free_hits, "calls", total, "Allocations served by a free run.", "",
         &DeviceTotals::free_hits},
        {"growths", &Of::growths, "times", total, "Number of times that a slab was made or grown.",
         "tensorpool_device_growths_total", &DeviceTotals::growths, "num_device_alloc"},
        {"grown_bytes", &Of::grown_bytes, "bytes", total,
         "Bytes that all growths took from the device.", "tensorpool_device_grown_bytes_total",
         &DeviceTotals::grown_bytes, "reserved_bytes.all.allocated"},
        {"give_backs", &Of::give_backs, "times", total,
         "Number of times that memory was returned to the device.",
         "tensorpool_device_give_backs_total", &DeviceTotals::give_backs, "num_device_free"},
        {"given_back_bytes", &Of::given_back_bytes, "bytes", total, "Bytes returned to the device.",
         "tensorpool_device_released_bytes_total", &DeviceTotals::given_back_bytes,
         "reserved_bytes.all.freed"},
        {"cross_stream_uses", &Of::cross_stream_uses, "calls", total,
         "Uses of a block on another stream than its own, as reported by callers.",
         "tensorpool_device_cross_stream_uses_total", &DeviceTotals::cross_stream_uses},
        {"events", &Of::events, "events", total, "Events recorded on streams.",
         "tensorpool_device_events_total", &DeviceTotals::events},
        {"synchronizations", &Of::synchronizations, "times", total,
         "Number of times that the allocator waited for the device.",
         "tensorpool_device_synchronizations_total", &DeviceTotals::synchronizations,
         "num_sync_all_streams"},
        {"pressures", &Of::pressures, "calls", total,
         "Requests met only after the allocator had reclaimed memory.",
         "tensorpool_device_pressures_total", &DeviceTotals::pressures, "num_alloc_retries"},
        {"failures", &Of::failures, "calls", total, "Requests that could not be met.",
         "tensorpool_device_allocation_failures_total", &DeviceTotals::failures, "num_ooms"},
    };
};

}  // namespace tensorpool::statistics
