#include <tensorpool/device/simulated_backend.hpp>

#include "simulation/simulation.hpp"

namespace tensorpool {

using device::Event;
using device::refuse;

namespace {

// Returns the mark that the event stands for, or nullptr. The shared pointer keeps the mark alive
// if another thread records the event again.
std::shared_ptr<device::Mark> awaited_mark(device::Simulation& s, int device, EventHandle event,
                                           const char* call) {
    auto mark = s.streams.event(device, event).mark;
    if (mark != nullptr && mark->capture != nullptr) s.captures.refuse(*mark->capture, call);
    return mark;
}

}  // namespace

DeviceStatus SimulatedBackend::create_stream(int device, StreamHandle* stream,
                                             int priority) noexcept {
    return simulation_->call(SimulatedCall::create_stream, device, [&](auto& s, auto&) {
        device::check_priority(priority, {});
        *stream = s.streams.create(device);
    });
}

DeviceStatus SimulatedBackend::destroy_stream(int device, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::destroy_stream, device, [&](auto& s, auto&) {
        const auto found = s.streams.get(device, stream);
        if (stream == nullptr) refuse("no such stream");
        s.captures.check_free(*found, "destroy_stream");
        s.streams.destroy(stream);
    });
}

DeviceStatus SimulatedBackend::synchronize_stream(int device, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::synchronize_stream, device, [&](auto& s, auto& lock) {
        s.synchronize(lock, s.streams.get(device, stream), "synchronize_stream");
    });
}

DeviceStatus SimulatedBackend::query_stream(int device, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::query_stream, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        s.captures.check_free(*found, "query_stream");
        const bool passed = s.ordering.poll(lock, *s.ordering.mark(found));
        return passed ? DeviceStatus::ok : DeviceStatus::not_ready;
    });
}

DeviceStatus SimulatedBackend::wait_event(int device, StreamHandle stream,
                                          EventHandle event) noexcept {
    return simulation_->call(SimulatedCall::wait_event, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        const auto mark = s.streams.event(event).mark;
        if (mark != nullptr) s.order_after(lock, *found, *mark);
    });
}

DeviceStatus SimulatedBackend::launch_host_function(int device, StreamHandle stream,
                                                    void (*function)(void* argument),
                                                    void* argument) noexcept {
    return simulation_->call(SimulatedCall::launch_host_function, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        if (function == nullptr) refuse("no function");
        device::Work work;
        work.label = "host function";
        work.run = [function, argument] { function(argument); };
        work.opaque = true;
        s.give(lock, *found, std::move(work));
    });
}

// Events -----------------------------------------------------------------------------------------

DeviceStatus SimulatedBackend::create_event(int device, EventFlags flags,
                                            EventHandle* event) noexcept {
    return simulation_->call(SimulatedCall::create_event, device, [&](auto& s, auto&) {
        device::check_flags_of_one_process(flags);
        *event = s.streams.create_event(device, contains(flags, EventFlags::timing));
    });
}

DeviceStatus SimulatedBackend::destroy_event(int device, EventHandle event) noexcept {
    return simulation_->call(SimulatedCall::destroy_event, device,
                             [&](auto& s, auto&) { s.streams.destroy_event(device, event); });
}

DeviceStatus SimulatedBackend::record_event(int device, EventHandle event,
                                            StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::record_event, device, [&](auto& s, auto&) {
        const auto found = s.streams.get(device, stream);
        s.streams.event(device, event).mark = s.ordering.mark(found);
    });
}

DeviceStatus SimulatedBackend::query_event(int device, EventHandle event) noexcept {
    return simulation_->call(SimulatedCall::query_event, device, [&](auto& s, auto& lock) {
        const auto mark = awaited_mark(s, device, event, "query_event");
        if (mark == nullptr) return DeviceStatus::ok;
        const std::uint64_t late_answers = s.book.faults().slow_event_queries;
        const bool passed = s.ordering.poll(lock, *mark, late_answers);
        return passed ? DeviceStatus::ok : DeviceStatus::not_ready;
    });
}

DeviceStatus SimulatedBackend::synchronize_event(int device, EventHandle event) noexcept {
    return simulation_->call(SimulatedCall::synchronize_event, device, [&](auto& s, auto& lock) {
        const auto mark = awaited_mark(s, device, event, "synchronize_event");
        if (mark == nullptr) return;
        s.ordering.wait(lock, *mark);
        s.memory.share(device).late = 0;
    });
}

DeviceStatus SimulatedBackend::elapsed_ms(int device, EventHandle from, EventHandle to,
                                          float* ms) noexcept {
    return simulation_->call(SimulatedCall::elapsed_ms, device, [&](auto& s, auto&) {
        const Event& first = s.streams.event(device, from);
        const Event& last = s.streams.event(device, to);
        if (!first.timing || !last.timing || first.mark == nullptr || last.mark == nullptr) {
            refuse("not both with timing and recorded");
        }
        for (const Event* const event : {&first, &last}) {
            if (event->mark->capture != nullptr)
                s.captures.refuse(*event->mark->capture, "elapsed_ms");
        }
        if (!first.mark->target.reached() || !last.mark->target.reached()) {
            return DeviceStatus::not_ready;
        }
        const auto ns = static_cast<std::int64_t>(last.mark->time_ns - first.mark->time_ns);
        *ms = static_cast<float>(static_cast<double>(ns) / 1e6);
        return DeviceStatus::ok;
    });
}

}  // namespace tensorpool
