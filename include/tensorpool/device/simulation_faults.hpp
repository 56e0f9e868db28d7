#pragma once

/// @file
/// What goes wrong on a simulated device, on demand.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tensorpool/device/simulated_calls.hpp>

namespace tensorpool {

/// Calls of one function that fail: out_of_memory where it asks for memory or maps it, otherwise
/// failed.
struct FailingCall {
    SimulatedCall call = SimulatedCall::allocate;
    std::uint64_t from = 1;   ///< counted from 1, since `set_faults`
    std::uint64_t count = 1;  ///< how many in a row
};

/// Holds from `SimulatedBackend::set_faults` until the next one. Nothing goes wrong by default.
struct SimulationFaults {
    std::vector<FailingCall> failing = {};
    /// `allocate`, `allocate_async` and `create_memory` of more are out_of_memory; 0: no bound.
    std::size_t largest_request = 0;
    bool refuses_pinned = false;  ///< `allocate_pinned` and `register_pinned` are out_of_memory
    /// Each event is not_ready for so many queries after it was reached.
    std::uint64_t slow_event_queries = 0;
    /// All calls from this one on are device_lost, counted from 1 over all functions but
    /// note_block; 0: none.
    std::uint64_t lost_from = 0;
};

}  // namespace tensorpool
