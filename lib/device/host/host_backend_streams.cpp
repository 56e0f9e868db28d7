// Streams and events of the CPU.

#include <utility>

#include "device/host/host_state.hpp"

namespace tensorpool {

using device::HostEvent;
using device::HostMark;
using device::HostStream;

// Streams ----------------------------------------------------------------------------------------

DeviceStatus HostBackend::create_stream(int device, StreamHandle* stream, int priority) noexcept {
    return state_->call("create_stream", device, [&] {
        device::check_priority(priority, {});
        *stream = state_->streams.create();
    });
}

DeviceStatus HostBackend::destroy_stream(int device, StreamHandle stream) noexcept {
    return state_->call("destroy_stream", device, [&] {
        if (stream != nullptr) state_->captures.forget(state_->streams.find(stream));
        state_->streams.destroy(stream);
    });
}

DeviceStatus HostBackend::synchronize_stream(int device, StreamHandle stream) noexcept {
    return state_->call("synchronize_stream", device,
                        [&] { state_->wait_for(state_->streams.find(stream)); });
}

DeviceStatus HostBackend::query_stream(int device, StreamHandle stream) noexcept {
    return state_->call("query_stream", device, [&] {
        const HostStream& queried = state_->streams.find(stream);
        state_->captures.check_stream(queried);
        return queried.is_idle() ? DeviceStatus::ok : DeviceStatus::not_ready;
    });
}

DeviceStatus HostBackend::wait_event(int device, StreamHandle stream, EventHandle event) noexcept {
    return state_->call("wait_event", device, [&] {
        HostStream& waiter = state_->streams.find(stream);
        const HostMark mark = state_->event_of(event).mark();
        if (mark.captured != nullptr) {
            state_->captures.join(waiter, *mark.captured);
        } else if (mark.stream != nullptr) {
            state_->captures.check_stream(waiter);
            if (mark.stream != &waiter && !mark.is_reached()) {
                waiter.give([to = mark.stream, number = mark.number] { to->wait_until(number); });
            }
        }
    });
}

DeviceStatus HostBackend::launch_host_function(int device, StreamHandle stream,
                                               void (*function)(void*), void* argument) noexcept {
    return state_->call("launch_host_function", device, [&] {
        HostStream& worker = state_->streams.find(stream);
        if (function == nullptr) device::refuse("the function is nullptr, expected a function");
        state_->give(worker, [function, argument] { function(argument); });
    });
}

// Events -----------------------------------------------------------------------------------------

DeviceStatus HostBackend::create_event(int device, EventFlags flags, EventHandle* event) noexcept {
    return state_->call("create_event", device, [&] {
        device::check_flags_of_one_process(flags);
        const bool timing = contains(flags, EventFlags::timing);
        *event = state_->events.add([timing](HostEvent& made) { made.begin_lifetime(timing); });
    });
}

DeviceStatus HostBackend::destroy_event(int device, EventHandle event) noexcept {
    return state_->call("destroy_event", device, [&] {
        HostEvent& ended = state_->event_of(event);
        if (!state_->events.end(event)) device::refuse("two threads destroyed the event at once");
        ended.end_lifetime();
        state_->events.recycle(event);
    });
}

DeviceStatus HostBackend::record_event(int device, EventHandle event,
                                       StreamHandle stream) noexcept {
    return state_->call("record_event", device, [&] {
        HostStream& recorded = state_->streams.find(stream);
        HostEvent& recorder = state_->event_of(event);
        if (auto point = state_->captures.point_of(recorded)) {
            recorder.record(std::move(point));
        } else {
            recorder.record(recorded);
        }
    });
}

DeviceStatus HostBackend::query_event(int device, EventHandle event) noexcept {
    return state_->call("query_event", device, [&] {
        const bool reached = state_->awaited_mark(event).is_reached();
        return reached ? DeviceStatus::ok : DeviceStatus::not_ready;
    });
}

DeviceStatus HostBackend::synchronize_event(int device, EventHandle event) noexcept {
    return state_->call("synchronize_event", device, [&] {
        state_->captures.check_thread();
        state_->awaited_mark(event).wait();
    });
}

DeviceStatus HostBackend::elapsed_ms(int device, EventHandle from, EventHandle to,
                                     float* ms) noexcept {
    return state_->call("elapsed_ms", device, [&] {
        const HostEvent::Time begin = state_->event_of(from).time();
        const HostEvent::Time end = state_->event_of(to).time();
        if (!begin.has_timing || !end.has_timing) {
            device::refuse("an event was created without timing, expected two with timing");
        }
        if (begin.mark.stream == nullptr || end.mark.stream == nullptr) {
            device::refuse(
                "an event was never recorded, or last in a capture, expected two recorded events");
        }
        if (!begin.is_reached || !end.is_reached) return DeviceStatus::not_ready;
        *ms =
            static_cast<float>((static_cast<double>(end.ns) - static_cast<double>(begin.ns)) / 1e6);
        return DeviceStatus::ok;
    });
}

}  // namespace tensorpool
