#pragma once

/// @file
/// Faults of a simulated device, on request.

#include <vector>

#include <tensorpool/device/simulated_calls.hpp>

namespace tensorpool {

/// Calls of one function that fail: with out_of_memory if the function allocates or maps memory,
/// otherwise with failed.
struct FailingCall {
    /// The function.
    SimulatedCall call = SimulatedCall::allocate;
    /// The first call that fails, counted from 1 since `set_faults`.
    std::uint64_t from = 1;
    /// The number of consecutive calls that fail.
    std::uint64_t count = 1;
};

/// The faults from one call of `SimulatedBackend::set_faults` to the next. By default there are
/// none.
struct SimulationFaults {
    /// The calls that fail.
    std::vector<FailingCall> failing = {};
    /// The limit, in bytes, above which `allocate`, `allocate_async` and `create_memory` return
    /// out_of_memory; 0 means no limit.
    std::size_t largest_request = 0;
    /// Whether `allocate_pinned` and `register_pinned` return out_of_memory.
    bool refuses_pinned = false;
    /// The number of queries for which an event is not_ready after it was reached.
    std::uint64_t slow_event_queries = 0;
    /// The call from which on all calls return device_lost, counted from 1 over all functions
    /// except note_block; 0 means none.
    std::uint64_t lost_from = 0;
};

}  // namespace tensorpool
