#include <tensorpool/device/simulated_calls.hpp>

namespace tensorpool {
namespace {

// In the order of SimulatedCall.
constexpr std::array<const char*, simulated_call_count> names = {
    "memory_info",
    "settle_memory",
    "synchronize_device",
    "allocate",
    "deallocate",
    "allocate_async",
    "deallocate_async",
    "set_release_threshold",
    "trim_stream_ordered",
    "host_pointer",
    "advise_memory",
    "prefetch_memory",
    "reserve_addresses",
    "release_addresses",
    "create_memory",
    "destroy_memory",
    "map_memory",
    "unmap_memory",
    "allocate_pinned",
    "deallocate_pinned",
    "register_pinned",
    "unregister_pinned",
    "create_stream",
    "destroy_stream",
    "synchronize_stream",
    "query_stream",
    "wait_event",
    "launch_host_function",
    "create_event",
    "destroy_event",
    "record_event",
    "query_event",
    "synchronize_event",
    "elapsed_ms",
    "copy",
    "copy_async",
    "fill",
    "fill_async",
    "enable_peer_access",
    "copy_peer_async",
    "begin_capture",
    "end_capture",
    "capture_state",
    "launch_graph",
    "destroy_graph",
    "note_block",
    "launch",
};
static_assert(names.back() != nullptr);

}  // namespace

const char* to_string(SimulatedCall call) noexcept {
    const auto index = static_cast<std::size_t>(call);
    return index < names.size() ? names[index] : "?";
}

}  // namespace tensorpool
