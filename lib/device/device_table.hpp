#pragma once

#include <tensorpool/device_statistics.hpp>

#include "statistics/records/record_table.hpp"
#include "statistics/segment/segment_layout.hpp"

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

/// The counters of one stream for one device allocator. Cumulative, like those of a thread.
struct alignas(64) DeviceStreamRecord {
    DeviceStreamCounters counters;
    Counter id;      // 0 if the record is free
    Counter device;  // the allocator's id
    Counter stream;  // the stream that counts in it: 0 for the default stream, others from 1 in
                     // order of appearance
    // Why memory is held. Written under the allocator's lock.
    Counter capture;           // of a cache of a capture or a pool: its number; otherwise 0
    Counter held_bytes;        // of the stream's slabs
    Counter free_bytes;        // the part of them in the sets
    Counter waiting_bytes;     // freed bytes that wait for this stream
    Counter waiting_since_ns;  // by the monotonic clock: when the oldest of them was freed; 0: none

    using Statistics = DeviceStreamStatistics;
    static const RecordKind layout;
};

/// One allocator of device memory, or of pinned memory.
struct alignas(64) DeviceRecord {
    Counter id;
    Name name;
    Counter kind;       // a DeviceStatistics::Kind
    Counter device[2];  // device name such as "cuda:0": 15 bytes, then zeros
    DeviceTotals totals;
    // Sums of the streams whose counters have no record. Updated from time to time, for readers in
    // other processes only.
    DeviceStreamCounters left_out;

    using Statistics = DeviceStatistics;
    static const RecordKind layout;
};

namespace device_streams {

using enum MetricKind;
using Of = DeviceStreamRecord;

inline constexpr Field fields[] = {
    {"device", "number", gauge, "Number of the allocator.", "", offsetof(Of, device)},
    {"stream", "number", gauge, "0 for the default stream, others from 1.", "",
     offsetof(Of, stream)},
    {"capture", "number", gauge, "Number of the capture or pool that holds the memory; 0 for none.",
     "", offsetof(Of, capture)},
    {"held_bytes", "bytes", gauge, "Bytes of its slabs.", "", offsetof(Of, held_bytes)},
    {"used_bytes", "bytes", gauge,
     "Bytes in use in its slabs, parked and deferred blocks included.", "",
     offsetof(Of, held_bytes)},
    {"parked_bytes", "bytes", gauge, "Bytes in recently freed blocks.", "",
     offsetof(Of, counters.parked_bytes)},
    {"waiting_bytes", "bytes", gauge, "Freed bytes that wait for its work.", "",
     offsetof(Of, waiting_bytes)},
    {"waiting_ns", "nanoseconds", gauge, "How long the oldest of them has waited.", "",
     offsetof(Of, waiting_since_ns)},
    {.name = "holds", .unit = "bytes", .use = Use::derived},
    hidden("free", offsetof(Of, free_bytes)),
    // Of the sums of the allocator, whose fields they are.
    hidden("freed", offsetof(Of, counters.deallocations), true),
    hidden("freed_bytes", offsetof(Of, counters.deallocated_bytes), true),
    hidden("freed_requested_bytes", offsetof(Of, counters.deallocated_requested_bytes), true),
};
inline constexpr IndexOf<fields> at;
inline constexpr Rule rules[] = {
    {Rule::minus, at("used_bytes"), at("free")},
    {Rule::at_most, at("parked_bytes"), at("used_bytes")},
    {Rule::age, at("waiting_ns")},
};
inline constexpr Rule derivations[] = {
    {Rule::plus, at("holds"), at("held_bytes")},
    {Rule::plus, at("holds"), at("waiting_bytes")},
};
inline constexpr Column columns[] = {
    {"ALLOCATOR", Column::reference, at("device"), no_field, "devices"},
    {"STREAM", Column::number, at("stream")},
    {"HELD", Column::size, at("held_bytes")},
    {"IN USE", Column::size, at("used_bytes")},
    {"PARKED", Column::size, at("parked_bytes")},
    {"WAITING", Column::size, at("waiting_bytes")},
    {"WAITED s", Column::seconds, at("waiting_ns")},
    {"GRAPH", Column::number, at("capture")},
    {"WHY", Column::text, no_field, no_field, "", "What it holds and what waits for it."},
};
inline constexpr RecordTable table = {.name = "device_streams",
                                      .of = "device_stream",
                                      .title = "streams of devices, and why they hold memory",
                                      .id_word = offsetof(Of, id),
                                      .name_word = no_word,
                                      .text = {"text"},
                                      .shown_if = at("holds"),
                                      .shows_other = false,
                                      .fields = fields,
                                      .rules = rules,
                                      .derivations = derivations,
                                      .columns = columns};

}  // namespace device_streams

inline constexpr RecordKind DeviceStreamRecord::layout = [] {
    RecordKind kind = kind_of<DeviceStreamRecord>(1024, device_streams::table);
    kind.is_part = true;
    return kind;
}();

namespace devices {

using enum MetricKind;
using Of = DeviceRecord;

inline constexpr Field fields[] = {
    {"id", "number", gauge,
     "Number that no other pool, arena or device allocator of the process has.", "",
     offsetof(Of, id)},
    {"in_use_bytes", "bytes", gauge, "Bytes of blocks that callers hold.",
     "tensorpool_device_block_bytes", no_word, "allocated_bytes.all.current"},
    {"peak_in_use_bytes", "bytes", peak,
     "Highest number of bytes in use at once, including bytes parked for streams.",
     "tensorpool_device_peak_block_bytes", offsetof(Of, totals.peak_held_bytes),
     "allocated_bytes.all.peak"},
    {"requested_in_use_bytes", "bytes", gauge, "Bytes requested for the blocks that callers hold.",
     "tensorpool_device_requested_block_bytes", no_word, "requested_bytes.all.current"},
    {"deferred_bytes", "bytes", gauge,
     "Freed bytes that wait until streams have finished with them.",
     "tensorpool_device_deferred_bytes", offsetof(Of, totals.deferred_bytes),
     "active_pending_free"},
    {"peak_active_bytes", "bytes", peak, "Highest number of bytes in use and deferred at once.",
     "tensorpool_device_peak_active_bytes", offsetof(Of, totals.peak_active_bytes),
     "active_bytes.all.peak"},
    {"capacity_bytes", "bytes", gauge, "Bytes of all slabs, free memory included.",
     "tensorpool_device_capacity_bytes", offsetof(Of, totals.capacity_bytes),
     "reserved_bytes.all.current"},
    {"peak_capacity_bytes", "bytes", peak, "Highest capacity.",
     "tensorpool_device_peak_capacity_bytes", offsetof(Of, totals.peak_capacity_bytes),
     "reserved_bytes.all.peak"},
    {"address_bytes", "bytes", gauge,
     "Address space of slabs that can grow, which takes no memory.",
     "tensorpool_device_address_bytes", offsetof(Of, totals.address_bytes)},
    {"free_bytes", "bytes", gauge, "Bytes of slabs that are neither in use nor deferred.",
     "tensorpool_device_free_bytes"},
    {"split_bytes", "bytes", gauge, "Free bytes in slabs that are partly in use.",
     "tensorpool_device_split_bytes", offsetof(Of, totals.split_bytes),
     "inactive_split_bytes.all.current"},
    {"parked_bytes", "bytes", gauge,
     "Free bytes in recently freed blocks that are ready for their stream.",
     "tensorpool_device_parked_bytes", offsetof(Of, left_out.parked_bytes)},
    {"captured_bytes", "bytes", gauge, "Bytes of slabs that are reserved for captured graphs.",
     "tensorpool_device_captured_bytes", offsetof(Of, totals.captured_bytes)},
    {"limit_bytes", "bytes", gauge, "Maximum of the capacity; 0 if there is no limit.", "",
     offsetof(Of, totals.limit_bytes)},
    {"soft_limit_bytes", "bytes", gauge,
     "Capacity above which free blocks are returned; 0 if there is no such limit.", "",
     offsetof(Of, totals.soft_limit_bytes)},
    {"slabs", "slabs", gauge, "Number of slabs.", "tensorpool_device_slabs",
     offsetof(Of, totals.slabs), "segment.all.current"},
    {"free_blocks", "blocks", gauge, "Free runs of bytes, not counting parked blocks.",
     "tensorpool_device_free_blocks", offsetof(Of, totals.free_blocks), "inactive"},
    {"deferred_blocks", "blocks", gauge,
     "Freed blocks that wait until streams have finished with them.",
     "tensorpool_device_deferred_blocks", offsetof(Of, totals.deferred_blocks),
     "active_pending_free"},
    {"streams", "streams", gauge, "Streams that have used the allocator.",
     "tensorpool_device_streams", offsetof(Of, totals.streams)},
    {"allocations", "calls", total, "Blocks allocated.", "", offsetof(Of, left_out.allocations),
     "allocation.all.allocated"},
    {"deallocations", "calls", total, "Blocks freed.", "tensorpool_device_deallocations_total",
     offsetof(Of, left_out.deallocations), "allocation.all.freed", true},
    {"requested_bytes", "bytes", total, "Bytes requested by all allocations.",
     "tensorpool_device_requested_bytes_total", offsetof(Of, left_out.requested_bytes),
     "requested_bytes.all.allocated"},
    {"allocated_bytes", "bytes", total,
     "Bytes allocated; the excess over the requested bytes is due to rounding.",
     "tensorpool_device_allocated_bytes_total", offsetof(Of, left_out.allocated_bytes),
     "allocated_bytes.all.allocated"},
    {"deallocated_bytes", "bytes", total, "Bytes of the blocks freed.",
     "tensorpool_device_deallocated_bytes_total", offsetof(Of, left_out.deallocated_bytes),
     "allocated_bytes.all.freed", true},
    {"parked_hits", "calls", total,
     "Allocations served by a block recently freed on the same stream.", "",
     offsetof(Of, left_out.parked_hits)},
    {"free_hits", "calls", total, "Allocations served by a free run.", "",
     offsetof(Of, totals.free_hits)},
    {"growths", "times", total, "Number of times that a slab was made or grown.",
     "tensorpool_device_growths_total", offsetof(Of, totals.growths), "num_device_alloc"},
    {"grown_bytes", "bytes", total, "Bytes that all growths took from the device.",
     "tensorpool_device_grown_bytes_total", offsetof(Of, totals.grown_bytes),
     "reserved_bytes.all.allocated"},
    {"give_backs", "times", total, "Number of times that memory was returned to the device.",
     "tensorpool_device_give_backs_total", offsetof(Of, totals.give_backs), "num_device_free"},
    {"given_back_bytes", "bytes", total, "Bytes returned to the device.",
     "tensorpool_device_released_bytes_total", offsetof(Of, totals.given_back_bytes),
     "reserved_bytes.all.freed"},
    {"cross_stream_uses", "calls", total,
     "Uses of a block on another stream than its own, as reported by callers.",
     "tensorpool_device_cross_stream_uses_total", offsetof(Of, totals.cross_stream_uses)},
    {"events", "events", total, "Events recorded on streams.", "tensorpool_device_events_total",
     offsetof(Of, totals.events)},
    {"synchronizations", "times", total,
     "Number of times that the allocator waited for the device.",
     "tensorpool_device_synchronizations_total", offsetof(Of, totals.synchronizations),
     "num_sync_all_streams"},
    {"pressures", "calls", total, "Requests met only after the allocator had reclaimed memory.",
     "tensorpool_device_pressures_total", offsetof(Of, totals.pressures), "num_alloc_retries"},
    {"failures", "calls", total, "Requests that could not be met.",
     "tensorpool_device_allocation_failures_total", offsetof(Of, totals.failures), "num_ooms"},
    {.name = "hits", .unit = "calls", .use = Use::derived},
    {.name = "slab", .unit = "calls", .use = Use::derived},
    hidden("deallocated_requested_bytes", offsetof(Of, left_out.deallocated_requested_bytes), true),
    hidden("active"),
};
inline constexpr IndexOf<fields> at;
inline constexpr Rule rules[] = {
    {Rule::plus, at("in_use_bytes"), at("allocated_bytes")},
    {Rule::minus, at("in_use_bytes"), at("deallocated_bytes")},
    {Rule::plus, at("requested_in_use_bytes"), at("requested_bytes")},
    {Rule::minus, at("requested_in_use_bytes"), at("deallocated_requested_bytes")},
    // Each part is at most the value that includes it.
    {Rule::at_most, at("deallocations"), at("allocations")},
    {Rule::at_most, at("deallocated_bytes"), at("allocated_bytes")},
    {Rule::at_most, at("parked_hits"), at("allocations")},
    {Rule::at_most, at("in_use_bytes"), at("capacity_bytes")},
    {Rule::at_most, at("requested_in_use_bytes"), at("in_use_bytes")},
    {Rule::plus, at("free_bytes"), at("capacity_bytes")},
    {Rule::minus, at("free_bytes"), at("in_use_bytes")},
    {Rule::at_most, at("deferred_bytes"), at("free_bytes")},
    {Rule::minus, at("free_bytes"), at("deferred_bytes")},
    {Rule::at_most, at("split_bytes"), at("free_bytes")},
    {Rule::at_most, at("parked_bytes"), at("free_bytes")},
    {Rule::at_most, at("captured_bytes"), at("capacity_bytes")},
    // Each peak is at least its value, and at most the peak of the value that includes it.
    {Rule::plus, at("active"), at("in_use_bytes")},
    {Rule::plus, at("active"), at("deferred_bytes")},
    {Rule::at_least, at("peak_capacity_bytes"), at("capacity_bytes")},
    {Rule::at_least, at("peak_active_bytes"), at("active")},
    {Rule::at_most, at("peak_active_bytes"), at("peak_capacity_bytes")},
    {Rule::at_least, at("peak_in_use_bytes"), at("in_use_bytes")},
    {Rule::at_most, at("peak_in_use_bytes"), at("peak_active_bytes")},
};
// A request in progress may count as a hit before it counts as an allocation.
inline constexpr Rule derivations[] = {
    {Rule::plus, at("hits"), at("parked_hits")},
    {Rule::plus, at("hits"), at("free_hits")},
    {Rule::plus, at("slab"), at("allocations")},
    {Rule::minus, at("slab"), at("hits")},
};
inline constexpr Family families[] = {
    divided("tensorpool_device_allocations_total", total,
            "Blocks allocated, by where they came from: recently freed on their stream, a free "
            "run, a new slab from the device.",
            "source", "parked|free|slab", {at("parked_hits"), at("free_hits"), at("slab")}),
    single("tensorpool_device_limit_bytes", gauge, "Maximum of the capacity.", Family::limit,
           at("limit_bytes")),
    single("tensorpool_device_soft_limit_bytes", gauge,
           "Capacity above which free blocks are returned.", Family::limit, at("soft_limit_bytes")),
};
inline constexpr Column columns[] = {
    {"NAME", Column::name},
    {.title = "DEVICE", .show = Column::text, .width = 6},
    {"IN USE", Column::size, at("in_use_bytes")},
    {"CAPACITY", Column::size, at("capacity_bytes")},
    {"FREE", Column::size, at("free_bytes")},
    {"DEFERRED", Column::size, at("deferred_bytes")},
    {"HITS", Column::part, at("hits"), at("allocations"), "",
     "Allocations served by parked blocks and by free runs."},
    {"ALLOC/s", Column::rate, at("allocations")},
    {.title = "FAIL", .show = Column::count, .value = at("failures"), .width = 4},
    {"PEAK", Column::size, at("peak_in_use_bytes")},
    {"HIGHEST", Column::highest, at("in_use_bytes")},
    {"LIMIT", Column::limit, at("limit_bytes")},
    {.title = "SLABS", .show = Column::count, .value = at("slabs"), .width = 5},
    {"STREAMS", Column::number, at("streams")},
    {"WAITS", Column::count, at("synchronizations")},
    {"KIND", Column::choice},
};
inline constexpr RecordTable table = {.name = "devices",
                                      .of = "device",
                                      .label = "allocator",
                                      .title = "allocators of device memory",
                                      .version = DeviceStatistics::current_version,
                                      .choice = {"kind", offsetof(Of, kind), "caching|pinned|host"},
                                      .text = {"device", offsetof(Of, device), sizeof(Of::device)},
                                      .parts = "device_streams",
                                      .parts_key = offsetof(DeviceStreamRecord, device),
                                      .parts_from = offsetof(DeviceStreamRecord, counters),
                                      .parts_into = offsetof(Of, left_out),
                                      .parts_bytes = sizeof(DeviceStreamCounters),
                                      .hits = at("hits"),
                                      .requests = at("allocations"),
                                      .fields = fields,
                                      .rules = rules,
                                      .derivations = derivations,
                                      .families = families,
                                      .columns = columns};

}  // namespace devices

inline constexpr RecordKind DeviceRecord::layout = kind_of<DeviceRecord>(256, devices::table);

}  // namespace tensorpool::statistics
