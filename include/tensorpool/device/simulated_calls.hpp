#pragma once

/// @file
/// Which functions of a simulated device were called how often: speed, asserted without a clock.

#include <array>
#include <cstddef>
#include <cstdint>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// Each function of a Backend that asks a device for something, in the order of backend.hpp.
enum class SimulatedCall : std::uint8_t {
    memory_info,
    settle_memory,
    synchronize_device,
    allocate,
    deallocate,
    allocate_async,
    deallocate_async,
    host_pointer,
    reserve_addresses,
    release_addresses,
    create_memory,
    destroy_memory,
    map_memory,
    unmap_memory,
    allocate_pinned,
    deallocate_pinned,
    register_pinned,
    unregister_pinned,
    create_stream,
    destroy_stream,
    synchronize_stream,
    query_stream,
    wait_event,
    launch_host_function,
    create_event,
    destroy_event,
    record_event,
    query_event,
    synchronize_event,
    elapsed_ms,
    copy,
    copy_async,
    fill,
    fill_async,
    enable_peer_access,
    copy_peer_async,
    begin_capture,
    end_capture,
    capture_state,
    launch_graph,
    destroy_graph,
    note_block,
    launch,
};
inline constexpr std::size_t simulated_call_count =
    static_cast<std::size_t>(SimulatedCall::launch) + 1;
/// The function's name; "?" for none.
TENSORPOOL_API const char* to_string(SimulatedCall call) noexcept;

/// How often each was called, failed calls included.
struct SimulatedCalls {
    std::array<std::uint64_t, simulated_call_count> counts = {};

    std::uint64_t operator[](SimulatedCall call) const noexcept {
        return counts[static_cast<std::size_t>(call)];
    }
    /// Whatever waits for a device: synchronisations, and copies and fills without a stream.
    std::uint64_t waits() const noexcept {
        using enum SimulatedCall;
        const SimulatedCalls& calls = *this;
        return calls[synchronize_device] + calls[synchronize_stream] + calls[synchronize_event] +
               calls[copy] + calls[fill];
    }
};

}  // namespace tensorpool
