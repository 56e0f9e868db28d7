#include <tensorpool/device/simulated_backend.hpp>

#include "simulation/simulation.hpp"

namespace tensorpool {

using device::Event;
using device::Simulation;
using device::SimulationLock;

DeviceStatus SimulatedBackend::create_stream(int device, StreamHandle* stream) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::create_stream, device, [&](SimulationLock&) {
        auto made = s.make_stream(device);
        *stream = reinterpret_cast<StreamHandle>(made.get());
        s.streams.emplace(*stream, std::move(made));
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::destroy_stream(int device, StreamHandle stream) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::destroy_stream, device, [&](SimulationLock&) {
        const auto found = s.stream(device, stream);
        if (stream == nullptr || found == nullptr) return s.no_stream();
        if (found->capture != nullptr) return s.illegal(found->capture.get(), "destroy_stream");
        s.streams.erase(stream);
        s.timelines.give(found->timeline);
        s.scheduler.retire(*found);
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::synchronize_stream(int device, StreamHandle stream) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::synchronize_stream, device, [&](SimulationLock& lock) {
        const auto found = s.stream(device, stream);
        if (found == nullptr) return s.no_stream();
        if (found->capture != nullptr) return s.illegal(found->capture.get(), "synchronize_stream");
        s.wait(lock, *s.mark(found));
        s.memory.settle(device);
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::query_stream(int device, StreamHandle stream) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::query_stream, device, [&](SimulationLock& lock) {
        const auto found = s.stream(device, stream);
        if (found == nullptr) return s.no_stream();
        if (found->capture != nullptr) return s.illegal(found->capture.get(), "query_stream");
        return s.poll(lock, *s.mark(found)) ? DeviceStatus::ok : DeviceStatus::not_ready;
    });
}

DeviceStatus SimulatedBackend::wait_event(int device, StreamHandle stream,
                                          EventHandle event) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::wait_event, device, [&](SimulationLock& lock) {
        const auto found = s.stream(device, stream);
        if (found == nullptr) return s.no_stream();
        const Event* const awaited = s.event(event);
        if (awaited == nullptr) return s.no_event();
        const auto mark = awaited->mark;
        return mark == nullptr ? DeviceStatus::ok : s.order_after(lock, *found, *mark);
    });
}

DeviceStatus SimulatedBackend::launch_host_function(int device, StreamHandle stream,
                                                    void (*function)(void* argument),
                                                    void* argument) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::launch_host_function, device, [&](SimulationLock& lock) {
        const auto found = s.stream(device, stream);
        if (found == nullptr) return s.no_stream();
        if (function == nullptr) return s.refuse(DeviceStatus::invalid_argument, "no function");
        device::Work work;
        work.label = "host function";
        work.run = [function, argument] { function(argument); };
        work.opaque = true;
        return s.give(lock, *found, std::move(work));
    });
}

// Events -----------------------------------------------------------------------------------------

DeviceStatus SimulatedBackend::create_event(int device, EventTiming timing,
                                            EventHandle* event) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::create_event, device, [&](SimulationLock&) {
        auto made = std::make_unique<Event>();
        made->device = device;
        made->timing = timing == EventTiming::on;
        *event = reinterpret_cast<EventHandle>(made.get());
        s.events.emplace(*event, std::move(made));
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::destroy_event(int device, EventHandle event) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::destroy_event, device, [&](SimulationLock&) {
        if (s.event(device, event) == nullptr) return s.no_event();
        s.events.erase(event);
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::record_event(int device, EventHandle event,
                                            StreamHandle stream) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::record_event, device, [&](SimulationLock&) {
        const auto found = s.stream(device, stream);
        if (found == nullptr) return s.no_stream();
        Event* const recorded = s.event(device, event);
        if (recorded == nullptr) return s.no_event();
        recorded->mark = s.mark(found);
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::query_event(int device, EventHandle event) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::query_event, device, [&](SimulationLock& lock) {
        const Event* const found = s.event(device, event);
        if (found == nullptr) return s.no_event();
        const auto mark = found->mark;  // others may record it again meanwhile
        if (mark == nullptr) return DeviceStatus::ok;
        if (mark->capture != nullptr) return s.illegal(mark->capture.get(), "query_event");
        return s.poll_event(lock, *mark) ? DeviceStatus::ok : DeviceStatus::not_ready;
    });
}

DeviceStatus SimulatedBackend::synchronize_event(int device, EventHandle event) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::synchronize_event, device, [&](SimulationLock& lock) {
        const Event* const found = s.event(device, event);
        if (found == nullptr) return s.no_event();
        const auto mark = found->mark;
        if (mark == nullptr) return DeviceStatus::ok;
        if (mark->capture != nullptr) return s.illegal(mark->capture.get(), "synchronize_event");
        s.wait(lock, *mark);
        s.memory.settle(device);
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::elapsed_ms(int device, EventHandle from, EventHandle to,
                                          float* ms) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::elapsed_ms, device, [&](SimulationLock&) {
        const Event* const first = s.event(device, from);
        const Event* const last = s.event(device, to);
        if (first == nullptr || last == nullptr) return s.no_event();
        if (!first->timing || !last->timing || first->mark == nullptr || last->mark == nullptr) {
            return s.refuse(DeviceStatus::invalid_argument, "not both with timing and recorded");
        }
        if (first->mark->capture != nullptr)
            return s.illegal(first->mark->capture.get(), "elapsed_ms");
        if (last->mark->capture != nullptr)
            return s.illegal(last->mark->capture.get(), "elapsed_ms");
        if (!first->mark->target.reached() || !last->mark->target.reached()) {
            return DeviceStatus::not_ready;
        }
        const auto ns = static_cast<std::int64_t>(last->mark->time_ns - first->mark->time_ns);
        *ms = static_cast<float>(static_cast<double>(ns) / 1e6);
        return DeviceStatus::ok;
    });
}

}  // namespace tensorpool
