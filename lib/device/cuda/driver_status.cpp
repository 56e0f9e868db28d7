#include "device/cuda/cuda_state.hpp"

namespace tensorpool::device::cuda {

DeviceStatus status_of(Result result) noexcept {
    switch (result) {
        case Result::success:
        case Result::peer_access_already_enabled:  // not an error by the rules of Backend
            return DeviceStatus::ok;
        case Result::not_ready:
            return DeviceStatus::not_ready;
        case Result::out_of_memory:
            return DeviceStatus::out_of_memory;
        case Result::not_supported:
        case Result::peer_access_unsupported:
        case Result::too_many_peers:
            return DeviceStatus::not_supported;
        case Result::invalid_value:
        case Result::invalid_device:
        case Result::invalid_context:
        case Result::invalid_handle:
        case Result::illegal_state:
        case Result::host_memory_already_registered:
        case Result::host_memory_not_registered:
            return DeviceStatus::invalid_argument;
        case Result::stream_capture_unsupported:
        case Result::stream_capture_invalidated:
        case Result::stream_capture_merge:
        case Result::stream_capture_unmatched:
        case Result::stream_capture_unjoined:
        case Result::stream_capture_isolation:
        case Result::stream_capture_implicit:
        case Result::captured_event:
        case Result::stream_capture_wrong_thread:
            return DeviceStatus::in_capture;
        // The reference documents for each of these that the process must end, or that all later
        // calls fail too.
        case Result::deinitialized:
        case Result::ecc_uncorrectable:
        case Result::nvlink_uncorrectable:
        case Result::contained:
        case Result::illegal_address:
        case Result::launch_timeout:
        case Result::context_is_destroyed:
        case Result::assert:
        case Result::hardware_stack_error:
        case Result::illegal_instruction:
        case Result::misaligned_address:
        case Result::invalid_address_space:
        case Result::invalid_pc:
        case Result::launch_failed:
        case Result::tensor_memory_leak:
        case Result::mps_client_terminated:
        case Result::external_device:
            return DeviceStatus::device_lost;
        default:
            return DeviceStatus::failed;
    }
}

}  // namespace tensorpool::device::cuda
