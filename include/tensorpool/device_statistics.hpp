#pragma once

/// @file
/// The statistics of an allocator of device memory or of pinned memory. All sizes are bytes.

#include <cstdint>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The statistics of one device allocator at one moment.
///
/// They are exact if no call is under way. Otherwise each value is one that held while the snapshot
/// was taken, and the bytes in use are never below their true value. PyTorch's name of a metric, if
/// it has one, is given in brackets.
struct DeviceStatistics {
    /// The version of this structure.
    static constexpr std::uint32_t current_version = 1;

    /// What the allocator allocates.
    enum class Kind : std::uint8_t {
        /// Device memory.
        caching,
        /// Pinned host memory, for copies.
        pinned,
        /// Host memory from a HostMemorySource.
        host,
    };

    /// The version of the structure that was filled in.
    std::uint32_t version = current_version;
    /// The allocator's name, zero-terminated.
    char name[48] = {};
    /// What the allocator allocates.
    Kind kind = Kind::caching;
    /// The device, such as "cuda:0".
    char device[16] = {};
    /// A number that no other pool or arena of the process ever has.
    std::uint64_t id = 0;

    /// The bytes of blocks that callers hold [allocated].
    std::uint64_t in_use_bytes = 0;
    /// The highest value of `in_use_bytes` so far. Parked blocks of streams count as in use. So the
    /// value is never below an `in_use_bytes` that a snapshot showed, and exceeds the true peak by
    /// at most the bytes that were parked.
    std::uint64_t peak_in_use_bytes = 0;
    /// The requested bytes of the blocks that callers hold [requested].
    std::uint64_t requested_in_use_bytes = 0;
    /// The bytes that were freed and are held back until streams have passed [active_pending_free].
    std::uint64_t deferred_bytes = 0;
    /// The most bytes in use and deferred at once [active, peak].
    std::uint64_t peak_active_bytes = 0;
    /// The bytes of all slabs, free memory included [reserved].
    std::uint64_t capacity_bytes = 0;
    /// The highest value of `capacity_bytes` so far.
    std::uint64_t peak_capacity_bytes = 0;
    /// The address space of slabs that can grow.
    std::uint64_t address_bytes = 0;
    /// The bytes of slabs that are neither in use nor deferred.
    std::uint64_t free_bytes = 0;
    /// The free bytes in slabs that are partly in use [inactive split].
    std::uint64_t split_bytes = 0;
    /// The free bytes in recently freed blocks that wait for their stream.
    std::uint64_t parked_bytes = 0;
    /// The bytes of slabs that belong to graphs and serve nothing else.
    std::uint64_t captured_bytes = 0;
    /// The hard limit; 0 means no limit.
    std::uint64_t limit_bytes = 0;
    /// The capacity from which free blocks are given back; 0 means no limit.
    std::uint64_t soft_limit_bytes = 0;

    /// The number of slabs held now [segments].
    std::uint64_t slabs = 0;
    /// The number of free runs in the sets [inactive].
    std::uint64_t free_blocks = 0;
    /// The number of blocks that are held back until streams have passed.
    std::uint64_t deferred_blocks = 0;
    /// The number of streams that the allocator knows.
    std::uint64_t streams = 0;

    /// The total number of allocations.
    std::uint64_t allocations = 0;
    /// The total number of deallocations.
    std::uint64_t deallocations = 0;
    /// The total of the requested sizes.
    std::uint64_t requested_bytes = 0;
    /// The total of the block sizes that served the requests [allocated, allocated].
    std::uint64_t allocated_bytes = 0;
    /// The total bytes of the freed blocks [allocated, freed].
    std::uint64_t deallocated_bytes = 0;
    /// The allocations that a recently freed block served.
    std::uint64_t parked_hits = 0;
    /// The allocations that a free run served.
    std::uint64_t free_hits = 0;
    /// How often a slab was made, or grown.
    std::uint64_t growths = 0;
    /// The total bytes of these growths [reserved, allocated].
    std::uint64_t grown_bytes = 0;
    /// How often memory was given back to the device.
    std::uint64_t give_backs = 0;
    /// The total bytes given back to the device [reserved, freed].
    std::uint64_t given_back_bytes = 0;
    /// The number of calls of `record_use`.
    std::uint64_t cross_stream_uses = 0;
    /// The number of events recorded on streams.
    std::uint64_t events = 0;
    /// How often the allocator waited for the device.
    std::uint64_t synchronizations = 0;
    /// The requests that were met only after memory had been gathered [retries].
    std::uint64_t pressures = 0;
    /// The requests that could not be met [ooms].
    std::uint64_t failures = 0;

    /// Returns the bytes in use divided by the capacity, from 0 to 1; 0 if there is no capacity.
    double utilization_ratio() const noexcept {
        return capacity_bytes == 0
                   ? 0.0
                   : static_cast<double>(in_use_bytes) / static_cast<double>(capacity_bytes);
    }
};

/// Why one stream, or the memory of one graph on it, keeps memory of an allocator.
struct DeviceStreamStatistics {
    /// The `id` of the allocator.
    std::uint64_t device = 0;
    /// 0 for the default stream, others from 1 in order of appearance.
    std::uint64_t stream = 0;
    /// The number of the capture or pool whose memory it is; 0 for that of the stream itself.
    std::uint64_t capture = 0;
    /// The bytes of its slabs, free memory included. They serve this stream only.
    std::uint64_t held_bytes = 0;
    /// The bytes in use in its slabs, parked and deferred blocks included.
    std::uint64_t used_bytes = 0;
    /// The bytes in recently freed blocks, which serve the stream again.
    std::uint64_t parked_bytes = 0;
    /// The freed bytes, of any stream, that wait for work of this one.
    std::uint64_t waiting_bytes = 0;
    /// How long the oldest of them has waited, in nanoseconds.
    std::uint64_t waiting_ns = 0;
};

/// Returns one sentence that says what the stream holds and what waits for it, such as "stream 2
/// holds 64 MiB, of which 40 MiB are in use; 20 MiB that were freed have waited for it for 5.2 s".
TENSORPOOL_API std::string to_text(const DeviceStreamStatistics& stream);
/// Returns one JSON object whose keys are the names of the fields, and the sentence as `text`.
TENSORPOOL_API std::string to_json(const DeviceStreamStatistics& stream);

/// Returns one JSON object whose keys are the names of the fields of DeviceStatistics. The kind is
/// a word, such as "caching".
TENSORPOOL_API std::string to_json(const DeviceStatistics& statistics);
/// Returns a report for people: a headline, then a few lines of statistics, with PyTorch's names in
/// a column. It ends with a newline.
TENSORPOOL_API std::string to_text(const DeviceStatistics& statistics);

}  // namespace tensorpool
