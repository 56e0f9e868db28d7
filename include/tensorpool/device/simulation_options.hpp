#pragma once

/// @file
/// The options of simulated devices: their memory, their abilities, and the order in which they
/// work.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorpool {

/// When submitted work runs. The hazards found are the same for each schedule: they follow from the
/// order that the program establishes, not from the order of execution.
enum class Schedule : std::uint8_t {
    /// At its submission, before the call returns.
    eager,
    /// When a call waits for it, and only the work that the call waits for.
    lazy,
    /// At random times, in an order that `seed` determines.
    random,
    /// As `choices` determine, which `explore` found; after their end, the first work that can run.
    replayed,
};

/// The options of simulated devices. All sizes are bytes; all times are nanoseconds of the
/// simulation's own clock.
struct SimulationOptions {
    /// The number of devices, each a peer of all others.
    int devices = 1;
    /// The memory of each device. Only touched memory takes memory of the host.
    std::size_t memory_bytes = std::size_t{16} << 30;
    /// The part of each device's memory that other processes hold.
    std::size_t other_process_bytes = 0;
    /// DeviceAbilities::recommended_bytes; 0: all of the memory.
    std::size_t recommended_bytes = 0;
    /// The limit for one `allocate`; 0: the memory is the only limit.
    std::size_t largest_allocation = 0;
    /// The granularity of virtual memory, a power of two.
    std::size_t granularity = std::size_t{2} << 20;

    /// Whether the devices have virtual memory.
    bool virtual_memory = true;
    /// Whether the devices support `allocate_async` and `deallocate_async`.
    bool stream_ordered_allocation = true;
    /// Whether the devices can capture streams.
    bool graph_capture = true;
    /// Whether the devices support StorageKind::shared.
    bool shared_storage = true;
    /// Whether the devices support StorageKind::managed.
    bool managed_storage = true;
    /// Whether devices and host use the same memory.
    bool unified_memory = false;
    /// Whether `memory_info` counts freed memory only after `settle_memory` or a synchronization.
    bool late_free_size = false;

    /// When submitted work runs.
    Schedule schedule = Schedule::eager;
    /// The seed of Schedule::random.
    std::uint64_t seed = 1;
    /// The choices of Schedule::replayed.
    std::vector<unsigned> choices = {};

    /// The number of consecutive results not_ready after which the work that a query waits for is
    /// done, so that a program that only polls makes progress. 0: never.
    std::uint64_t patience = 10'000;

    /// Whether hazards are found.
    bool finds_hazards = true;
    /// Whether allocators note their blocks, so that hazards within slabs are found.
    bool watches_blocks = true;
    /// The number of hazards that are stored; further ones are only counted.
    std::size_t max_hazards = 100;
    /// Whether the first 4 KiB of each block are filled: fresh memory with NaNs (0x7fedbeef), freed
    /// memory with 0xDD.
    bool fill_patterns = true;

    /// The time that the host takes to submit work to a stream.
    std::uint64_t launch_latency_ns = 2'000;
    /// The speed of copies from host to device.
    double host_to_device_bytes_per_ns = 25;
    /// The speed of copies from device to host.
    double device_to_host_bytes_per_ns = 25;
    /// The speed of copies within a device, and of fills.
    double device_to_device_bytes_per_ns = 1'000;
    /// The speed of copies within host memory.
    double host_to_host_bytes_per_ns = 10;
    /// The speed of copies between devices.
    double peer_bytes_per_ns = 100;
};

}  // namespace tensorpool
