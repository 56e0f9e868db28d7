#pragma once

/// @file
/// Counts of the calls of a simulated device's functions, for tests of speed without a clock.

#include <array>
#include <cstddef>
#include <cstdint>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The functions that call a device, in the order of backend.hpp.
enum class SimulatedCall : std::uint8_t {
    memory_info,            ///< Backend::memory_info
    settle_memory,          ///< Backend::settle_memory
    synchronize_device,     ///< Backend::synchronize_device
    allocate,               ///< Backend::allocate
    deallocate,             ///< Backend::deallocate
    allocate_async,         ///< Backend::allocate_async
    deallocate_async,       ///< Backend::deallocate_async
    set_release_threshold,  ///< Backend::set_release_threshold
    trim_stream_ordered,    ///< Backend::trim_stream_ordered
    host_pointer,           ///< Backend::host_pointer
    advise_memory,          ///< Backend::advise_memory
    prefetch_memory,        ///< Backend::prefetch_memory
    reserve_addresses,      ///< Backend::reserve_addresses
    release_addresses,      ///< Backend::release_addresses
    create_memory,          ///< Backend::create_memory
    destroy_memory,         ///< Backend::destroy_memory
    map_memory,             ///< Backend::map_memory
    unmap_memory,           ///< Backend::unmap_memory
    allocate_pinned,        ///< Backend::allocate_pinned
    deallocate_pinned,      ///< Backend::deallocate_pinned
    register_pinned,        ///< Backend::register_pinned
    unregister_pinned,      ///< Backend::unregister_pinned
    create_stream,          ///< Backend::create_stream
    destroy_stream,         ///< Backend::destroy_stream
    synchronize_stream,     ///< Backend::synchronize_stream
    query_stream,           ///< Backend::query_stream
    wait_event,             ///< Backend::wait_event
    launch_host_function,   ///< Backend::launch_host_function
    create_event,           ///< Backend::create_event
    destroy_event,          ///< Backend::destroy_event
    record_event,           ///< Backend::record_event
    query_event,            ///< Backend::query_event
    synchronize_event,      ///< Backend::synchronize_event
    elapsed_ms,             ///< Backend::elapsed_ms
    copy,                   ///< Backend::copy
    copy_async,             ///< Backend::copy_async
    fill,                   ///< Backend::fill
    fill_async,             ///< Backend::fill_async
    enable_peer_access,     ///< Backend::enable_peer_access
    copy_peer_async,        ///< Backend::copy_peer_async
    begin_capture,          ///< Backend::begin_capture
    end_capture,            ///< Backend::end_capture
    capture_state,          ///< Backend::capture_state
    launch_graph,           ///< Backend::launch_graph
    destroy_graph,          ///< Backend::destroy_graph
    note_block,             ///< Backend::note_block
    launch,                 ///< SimulatedBackend::launch
};
/// The number of values of SimulatedCall.
inline constexpr std::size_t simulated_call_count =
    static_cast<std::size_t>(SimulatedCall::launch) + 1;
/// Returns the function's name; "?" for an unknown value.
TENSORPOOL_API const char* to_string(SimulatedCall call) noexcept;

/// How often each function was called, including failed calls.
struct SimulatedCalls {
    /// The counts, by SimulatedCall.
    std::array<std::uint64_t, simulated_call_count> counts = {};

    /// Returns how often a function was called.
    std::uint64_t operator[](SimulatedCall call) const noexcept {
        return counts[static_cast<std::size_t>(call)];
    }
    /// Returns the number of calls that wait for a device: synchronizations, and copies and fills
    /// without a stream.
    std::uint64_t waits() const noexcept {
        using enum SimulatedCall;
        const SimulatedCalls& calls = *this;
        return calls[synchronize_device] + calls[synchronize_stream] + calls[synchronize_event] +
               calls[copy] + calls[fill];
    }
};

}  // namespace tensorpool
