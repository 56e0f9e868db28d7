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

/// A device without eyes, so that the fast path is open.
inline SimulationOptions unwatched(SimulationOptions options) {
    options.watches_blocks = false;
    options.finds_hazards = false;
    return options;
}

/// How often the device was asked for memory, was waited for, and so on, since the last look.
struct Asked {
    std::uint64_t memory = 0;
    std::uint64_t maps = 0;
    std::uint64_t given_back = 0;
    std::uint64_t waits = 0;
    std::uint64_t events = 0;

    explicit Asked(SimulatedBackend& backend) {
        using enum SimulatedCall;
        const SimulatedCalls calls = backend.calls();
        memory = calls[allocate] + calls[create_memory];
        maps = calls[map_memory] + calls[unmap_memory];
        given_back = calls[deallocate] + calls[destroy_memory];
        waits = calls.waits();
        events = calls[record_event];
        backend.reset_calls();
    }
};

}  // namespace tensorpool::test
