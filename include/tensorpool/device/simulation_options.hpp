#pragma once

/// @file
/// What a simulated device is like: its size, what it can do, and in which order it works.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorpool {

/// When work that was given to streams is done. Whatever it is, hazards are the same: they are
/// found by what is ordered before what, not by what happened first.
enum class Schedule : std::uint8_t {
    eager,     ///< as it is given, before the call returns
    lazy,      ///< only what somebody waits for, when it is waited for
    random,    ///< now and then, in an order that `seed` decides
    replayed,  ///< as `choices` say, which `explore` found; where they end, the first one that can
};

/// All sizes are bytes, all times nanoseconds of the simulation's own clock.
struct SimulationOptions {
    int devices = 1;                                   ///< each a peer of all others
    std::size_t memory_bytes = std::size_t{16} << 30;  ///< of each device. Costs what is touched
    std::size_t other_process_bytes = 0;  ///< of that, what other processes hold, of each device
    std::size_t recommended_bytes = 0;    ///< 0: the total
    std::size_t largest_allocation = 0;   ///< of one `allocate`; 0: as much as there is
    std::size_t granularity = std::size_t{2} << 20;  ///< of virtual memory: a power of two

    bool virtual_memory = true;
    bool stream_ordered_allocation = true;
    bool graph_capture = true;
    bool shared_storage = true;
    bool managed_storage = true;
    bool unified_memory = false;
    /// `memory_info` counts what was given back only after `settle_memory` or a synchronisation.
    bool late_free_size = false;

    Schedule schedule = Schedule::eager;
    std::uint64_t seed = 1;              ///< of Schedule::random
    std::vector<unsigned> choices = {};  ///< of Schedule::replayed

    /// A program that only polls gets on too: after so many answers of "not ready" in a row, what a
    /// query asks for is done. 0: never.
    std::uint64_t patience = 10'000;

    bool finds_hazards = true;
    /// Asks allocators to tell it of their blocks, so that hazards within slabs are found.
    bool watches_blocks = true;
    std::size_t max_hazards = 100;  ///< that are kept; the rest is counted
    /// Fresh memory holds NaNs (0x7fedbeef) and freed memory 0xDD: the first 4 KiB of each block.
    bool fill_patterns = true;

    std::uint64_t launch_latency_ns = 2'000;  ///< that the host spends on giving work to a stream
    double host_to_device_bytes_per_ns = 25;
    double device_to_host_bytes_per_ns = 25;
    double device_to_device_bytes_per_ns = 1'000;  ///< fills too
    double host_to_host_bytes_per_ns = 10;
    double peer_bytes_per_ns = 100;
};

}  // namespace tensorpool
