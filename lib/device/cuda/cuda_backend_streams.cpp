#include <tensorpool/device/cuda_backend.hpp>

#include "device/cuda/cuda_state.hpp"

namespace tensorpool {

using device::cuda::CudaDevice;
using device::cuda::CudaState;
using device::cuda::to_driver;

namespace {

/// REQUIRES: the device's context is current.
StreamPriorities priorities_of(CudaState& state) {
    StreamPriorities priorities;
    state.invoke(state.api.stream_priority_range, &priorities.lowest, &priorities.highest);
    return priorities;
}

unsigned driver_flags(EventFlags flags) {
    device::check_event_flags(flags);
    unsigned made = device::cuda::event_default;
    if (!contains(flags, EventFlags::timing)) made |= device::cuda::event_disable_timing;
    if (contains(flags, EventFlags::blocking)) made |= device::cuda::event_blocking_sync;
    if (contains(flags, EventFlags::interprocess)) made |= device::cuda::event_interprocess;
    return made;
}

}  // namespace

// The driver would clamp a priority outside the range (reference, cuStreamCreateWithPriority).
DeviceStatus CudaBackend::create_stream(int device, StreamHandle* stream, int priority) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        if (priority != 0) device::check_priority(priority, priorities_of(*state_));
        device::cuda::Stream made = nullptr;
        state_->invoke(state_->api.stream_create_with_priority, &made,
                       device::cuda::stream_non_blocking, priority);
        try {
            state_->own_streams.add(made);
        } catch (...) {
            state_->api.stream_destroy(made);
            throw;
        }
        *stream = reinterpret_cast<StreamHandle>(made);
    });
}

DeviceStatus CudaBackend::stream_priorities(int device, StreamPriorities& priorities) noexcept {
    return state_->run(device, [&](const CudaDevice&) { priorities = priorities_of(*state_); });
}

DeviceStatus CudaBackend::destroy_stream(int device, StreamHandle stream) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        // Removed first: the driver may give the handle out again at once.
        const bool own = state_->own_streams.remove(to_driver(stream));
        try {
            return state_->invoke(state_->api.stream_destroy, stream);
        } catch (...) {
            if (own) state_->own_streams.add(to_driver(stream));
            throw;
        }
    });
}

bool CudaBackend::owns_stream(int, StreamHandle stream) noexcept {
    const auto handle = reinterpret_cast<std::uintptr_t>(stream);
    return handle <= device::cuda::legacy_stream_handle ||
           state_->own_streams.contains(to_driver(stream));
}

DeviceStatus CudaBackend::stream_id(int device, StreamHandle stream, std::uint64_t* id) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        unsigned long long found = 0;
        state_->invoke(state_->api.stream_id, stream, &found);
        *id = found;
    });
}

DeviceStatus CudaBackend::synchronize_stream(int device, StreamHandle stream) noexcept {
    return state_->call_waiting(device, state_->api.stream_synchronize, stream);
}

DeviceStatus CudaBackend::query_stream(int device, StreamHandle stream) noexcept {
    return state_->call(device, state_->api.stream_query, stream);
}

DeviceStatus CudaBackend::wait_event(int device, StreamHandle stream, EventHandle event) noexcept {
    return state_->call(device, state_->api.stream_wait_event, stream, event, 0U);
}

DeviceStatus CudaBackend::launch_host_function(int device, StreamHandle stream,
                                               void (*function)(void* argument),
                                               void* argument) noexcept {
    return state_->call(device, state_->api.launch_host_function, stream, function, argument);
}

DeviceStatus CudaBackend::create_event(int device, EventFlags flags, EventHandle* event) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        device::cuda::Event made = nullptr;
        state_->invoke(state_->api.event_create, &made, driver_flags(flags));
        *event = reinterpret_cast<EventHandle>(made);
    });
}

DeviceStatus CudaBackend::destroy_event(int device, EventHandle event) noexcept {
    return state_->call(device, state_->api.event_destroy, event);
}

DeviceStatus CudaBackend::record_event(int device, EventHandle event,
                                       StreamHandle stream) noexcept {
    return state_->call(device, state_->api.event_record, event, stream);
}

DeviceStatus CudaBackend::query_event(int device, EventHandle event) noexcept {
    return state_->call(device, state_->api.event_query, event);
}

DeviceStatus CudaBackend::synchronize_event(int device, EventHandle event) noexcept {
    return state_->call_waiting(device, state_->api.event_synchronize, event);
}

DeviceStatus CudaBackend::elapsed_ms(int device, EventHandle from, EventHandle to,
                                     float* ms) noexcept {
    return state_->call(device, state_->api.event_elapsed, ms, from, to);
}

}  // namespace tensorpool
