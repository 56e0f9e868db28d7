#pragma once

/// @file
/// What an allocator of device memory, or of pinned memory, did and holds. All sizes are bytes.

#include <cstdint>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// A snapshot of one device allocator. Exact when no call is under way; otherwise each figure is
/// one that held while the snapshot was taken, and what is in use never reads below what it was.
///
/// PyTorch's word for each, where it has one, stands in brackets.
struct DeviceStatistics {
    static constexpr std::uint32_t current_version = 1;

    enum class Kind : std::uint8_t {
        caching,  ///< device memory
        pinned,   ///< host memory that stays where it is, for copies
        host,     ///< the CPU's, from a source handed in
    };

    std::uint32_t version = current_version;
    char name[48] = {};
    Kind kind = Kind::caching;
    char device[16] = {};  ///< such as "cuda:0"
    std::uint64_t id = 0;  ///< unlike that of any other pool or arena of the process, ever

    std::uint64_t in_use_bytes = 0;  ///< of blocks that callers hold [allocated]
    /// The most of that at once. What streams park is counted as in use: never below any
    /// `in_use_bytes` that a snapshot showed, and above the true peak by at most what was parked.
    std::uint64_t peak_in_use_bytes = 0;
    std::uint64_t requested_in_use_bytes = 0;  ///< what was asked for with them [requested]
    /// Freed, and held back until streams have passed [active_pending_free].
    std::uint64_t deferred_bytes = 0;
    std::uint64_t peak_active_bytes = 0;  ///< the most in use and deferred at once [active, peak]
    std::uint64_t capacity_bytes = 0;     ///< of all slabs, free memory included [reserved]
    std::uint64_t peak_capacity_bytes = 0;
    std::uint64_t address_bytes = 0;  ///< address space of slabs that can grow
    std::uint64_t free_bytes = 0;     ///< of slabs, neither in use nor deferred
    std::uint64_t split_bytes = 0;    ///< of that, in slabs that are partly in use [inactive split]
    std::uint64_t parked_bytes = 0;   ///< of that, lately freed blocks, ready for their stream
    std::uint64_t captured_bytes = 0;    ///< of slabs of graphs, which nobody else gets
    std::uint64_t limit_bytes = 0;       ///< the hard limit; 0: none
    std::uint64_t soft_limit_bytes = 0;  ///< from which free blocks are given back; 0: none

    std::uint64_t slabs = 0;        ///< held now [segments]
    std::uint64_t free_blocks = 0;  ///< runs that lie in the sets [inactive]
    std::uint64_t deferred_blocks = 0;
    std::uint64_t streams = 0;  ///< that the allocator knows

    /// Running totals.
    std::uint64_t allocations = 0;
    std::uint64_t deallocations = 0;
    std::uint64_t requested_bytes = 0;    ///< of what was asked for
    std::uint64_t allocated_bytes = 0;    ///< of what was handed out for it [allocated, allocated]
    std::uint64_t deallocated_bytes = 0;  ///< [allocated, freed]
    std::uint64_t parked_hits = 0;        ///< allocations that a lately freed block served
    std::uint64_t free_hits = 0;          ///< allocations that a free run served
    std::uint64_t growths = 0;            ///< slabs made, or grown
    std::uint64_t grown_bytes = 0;        ///< [reserved, allocated]
    std::uint64_t give_backs = 0;         ///< times that memory went back to the device
    std::uint64_t given_back_bytes = 0;   ///< [reserved, freed]
    std::uint64_t cross_stream_uses = 0;  ///< `record_use`
    std::uint64_t events = 0;             ///< recorded on streams
    std::uint64_t synchronizations = 0;   ///< times that the allocator waited for the device
    std::uint64_t pressures = 0;  ///< requests met only after memory had been gathered [retries]
    std::uint64_t failures = 0;   ///< requests that could not be met [ooms]
};

/// One JSON object, the names those of the fields above; the kind is a word, such as "caching".
TENSORPOOL_API std::string to_json(const DeviceStatistics& statistics);
/// A report for people: a headline, then a few lines of figures, PyTorch's words in a column beside
/// ours. Ends with a newline.
TENSORPOOL_API std::string to_text(const DeviceStatistics& statistics);

}  // namespace tensorpool
