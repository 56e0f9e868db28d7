#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <tensorpool/device/caching_allocator.hpp>
#include <tensorpool/device/simulated_backend.hpp>

#include "simulation/simulated_work.hpp"

namespace tensorpool::test {

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;

enum class Slabs : bool { plain, expandable };

inline SimulationOptions device_with(Slabs slabs, std::size_t memory = 1024 * mib,
                                     Schedule schedule = Schedule::lazy) {
    SimulationOptions options;
    options.memory_bytes = memory;
    options.schedule = schedule;
    options.virtual_memory = slabs == Slabs::expandable;
    options.graph_capture = false;
    return options;
}

/// Options of a device that does not watch blocks, so that the fast path is open.
inline SimulationOptions unwatched(SimulationOptions options) {
    options.watches_blocks = false;
    options.finds_hazards = false;
    return options;
}

/// Counts of calls to the device for memory, mappings, releases and waits, since the last reset.
struct DeviceCalls {
    std::uint64_t memory = 0;
    std::uint64_t maps = 0;
    std::uint64_t released = 0;
    std::uint64_t waits = 0;
    std::uint64_t events = 0;

    explicit DeviceCalls(SimulatedBackend& backend) {
        using enum SimulatedCall;
        const SimulatedCalls calls = backend.calls();
        memory = calls[allocate] + calls[create_memory];
        maps = calls[map_memory] + calls[unmap_memory];
        released = calls[deallocate] + calls[destroy_memory];
        waits = calls.waits();
        events = calls[record_event];
        backend.reset_calls();
    }
};

}  // namespace tensorpool::test
