#include <tensorpool/device/simulated_backend.hpp>

#include "simulation/simulation.hpp"

namespace tensorpool {

using namespace device;

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

namespace {

std::uint64_t duration_ns(std::size_t bytes, double bytes_per_ns) noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) / bytes_per_ns);
}

double bandwidth(const SimulationOptions& options, CopyKind kind) noexcept {
    const double of_kind[] = {
        options.host_to_host_bytes_per_ns, options.host_to_device_bytes_per_ns,
        options.device_to_host_bytes_per_ns, options.device_to_device_bytes_per_ns};
    return of_kind[static_cast<std::size_t>(kind)];
}

Work copy_work(std::string label, void* to, const void* from, std::size_t bytes, double speed) {
    Work work;
    work.label = std::move(label);
    work.reads = {{from, bytes}};
    work.writes = {{to, bytes}};
    work.run = [to, from, bytes] { std::memcpy(to, from, bytes); };
    work.duration_ns = duration_ns(bytes, speed);
    return work;
}

Work fill_work(void* memory, std::uint8_t byte, std::size_t bytes, double speed) {
    Work work;
    work.label = "fill";
    work.writes = {{memory, bytes}};
    work.run = [memory, byte, bytes] { std::memset(memory, byte, bytes); };
    work.duration_ns = duration_ns(bytes, speed);
    return work;
}

/// Reads the source of a copy now, as CUDA's driver does with pageable memory. The copy is then
/// made from what was read.
void take_source(device::Simulation& s, int device, Work& copy, void* to, const void* from,
                 std::size_t bytes) {
    const auto taken = std::make_shared<std::vector<std::byte>>(bytes);
    Work take;
    take.label = copy.label;
    take.reads = std::exchange(copy.reads, {});
    take.run = [&] { std::memcpy(taken->data(), from, bytes); };
    s.do_at_once(device, take);
    copy.run = [taken, to] { std::memcpy(to, taken->data(), taken->size()); };
}

std::string copy_label(CopyKind kind) {
    return std::string("copy ") + to_string(kind);
}

void check_kind(CopyKind kind) {
    if (kind > CopyKind::device_to_device) refuse("no such kind of copy");
}

}  // namespace

DeviceStatus SimulatedBackend::copy(int device, CopyKind kind, void* to, const void* from,
                                    std::size_t bytes) noexcept {
    return simulation_->call(SimulatedCall::copy, device, [&](auto& s, auto& lock) {
        check_kind(kind);
        if (bytes == 0) return;
        s.do_now(lock, device,
                 copy_work(copy_label(kind), to, from, bytes, bandwidth(s.options, kind)));
    });
}

DeviceStatus SimulatedBackend::copy_async(int device, CopyKind kind, void* to, const void* from,
                                          std::size_t bytes, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::copy_async, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        check_kind(kind);
        if (bytes == 0) return;
        Work work = copy_work(copy_label(kind), to, from, bytes, bandwidth(s.options, kind));
        const bool is_pageable = s.memory.find(reinterpret_cast<std::uintptr_t>(from)) == nullptr;
        const bool is_captured = found->capture != nullptr;
        if (kind == CopyKind::host_to_device && is_pageable && !is_captured) {
            take_source(s, device, work, to, from, bytes);
        }
        s.give(lock, *found, std::move(work));
    });
}

DeviceStatus SimulatedBackend::fill(int device, void* memory, std::uint8_t byte,
                                    std::size_t bytes) noexcept {
    return simulation_->call(SimulatedCall::fill, device, [&](auto& s, auto& lock) {
        if (bytes == 0) return;
        s.do_now(lock, device,
                 fill_work(memory, byte, bytes, s.options.device_to_device_bytes_per_ns));
    });
}

DeviceStatus SimulatedBackend::fill_async(int device, void* memory, std::uint8_t byte,
                                          std::size_t bytes, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::fill_async, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        if (bytes == 0) return;
        s.give(lock, *found,
               fill_work(memory, byte, bytes, s.options.device_to_device_bytes_per_ns));
    });
}

// Peers ------------------------------------------------------------------------------------------

bool SimulatedBackend::can_access_peer(int device, int peer) noexcept {
    return device != peer && simulation_->is_device(device) && simulation_->is_device(peer);
}

DeviceStatus SimulatedBackend::enable_peer_access(int device, int peer) noexcept {
    return simulation_->call(SimulatedCall::enable_peer_access, device, [&](auto& s, auto&) {
        if (!can_access_peer(device, peer)) refuse("no such peer");
        s.peers[static_cast<std::size_t>(device)][static_cast<std::size_t>(peer)] = true;
    });
}

DeviceStatus SimulatedBackend::copy_peer_async(int to_device, void* to, int from_device,
                                               const void* from, std::size_t bytes,
                                               StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::copy_peer_async, to_device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(to_device, stream);
        if (to_device == from_device || !s.reaches(to_device, from_device)) {
            refuse("without access to its peer");
        }
        if (bytes == 0) return;
        s.give(lock, *found,
               copy_work("copy from peer", to, from, bytes, s.options.peer_bytes_per_ns));
    });
}

}  // namespace tensorpool
