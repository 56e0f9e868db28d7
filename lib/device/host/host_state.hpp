#pragma once

#include <memory>
#include <string>
#include <utility>

#include <tensorpool/device/device_status.hpp>
#include <tensorpool/device/host_backend.hpp>

#include "device/call_errors.hpp"
#include "device/host/handle_table.hpp"
#include "device/host/host_capture.hpp"
#include "device/host/host_event.hpp"
#include "device/host/host_memory.hpp"
#include "device/host/host_streams.hpp"
#include "device/host/host_virtual_memory.hpp"
#include "platform/platform.hpp"

namespace tensorpool {

/// The parts of a HostBackend, and what several of its functions need of them. `call` catches the
/// DeviceError that they throw.
///
/// `streams` is the last member, because its destructor waits for work that uses the other parts.
struct HostBackend::State {
    using HostEvent = device::HostEvent;
    using HostGraph = device::HostGraph;
    using HostMark = device::HostMark;
    using HostStream = device::HostStream;

    State() : name(platform::processor_name().text) {
        if (name.empty()) name = "CPU";
    }

    /// Makes a call for device 0. Returns what `body` returns, ok if it returns nothing, or the
    /// status of what it throws.
    template <class Body>
    DeviceStatus call(const char* function, int device, Body body) noexcept {
        return errors.guard(function, [&] {
            if (device != 0) {
                device::refuse("device " + std::to_string(device) + ", expected 0, the only one");
            }
            return body();
        });
    }
    /// Makes a call that needs virtual memory.
    template <class Body>
    DeviceStatus call_virtual(const char* function, int device, Body body) noexcept {
        return call(function, device, [&] {
            if (!virtual_memory.is_there()) {
                throw DeviceError(DeviceStatus::not_supported, "this system cannot move memory");
            }
            body();
        });
    }

    HostEvent& event_of(EventHandle handle) const {
        if (HostEvent* const event = events.find(handle)) return *event;
        device::refuse("event " + device::to_text(handle) +
                       ": expected one that was created and not destroyed");
    }

    /// Submits work to the stream's queue, or records it in the stream's capture.
    void give(HostStream& stream, HostStream::Work work) {
        if (!captures.keep(stream, work)) stream.give(std::move(work));
    }

    /// Waits until all work submitted to the stream is done. Throws if the calling thread is
    /// capturing a stream, or if this stream is being captured.
    void wait_for(HostStream& stream) {
        captures.check_thread();
        captures.check_stream(stream);
        stream.wait();
    }

    /// Returns the event's mark. Throws if it was recorded in a capture and so is never reached.
    HostMark awaited_mark(EventHandle event) const {
        HostMark mark = event_of(event).mark();
        if (mark.captured == nullptr) return mark;
        throw DeviceError(DeviceStatus::in_capture,
                          "the event was last recorded in a captured stream");
    }

    [[noreturn]] static void refuse_graph(GraphHandle handle) {
        device::refuse("graph " + device::to_text(handle) +
                       ": expected one that was captured and not destroyed");
    }
    std::shared_ptr<const HostGraph> graph_of(GraphHandle handle) const {
        if (const auto* const graph = graphs.find(handle)) return *graph;
        refuse_graph(handle);
    }

    const std::size_t total_bytes = platform::total_memory();
    std::string name;
    device::CallErrors errors;
    device::HostMemory memory;
    device::HostMemory pinned;
    device::HostVirtualMemory virtual_memory;
    device::HandleTable<HostEvent, EventHandle> events;
    device::HostCaptures captures;
    device::HandleTable<std::shared_ptr<const HostGraph>, GraphHandle> graphs;
    device::HostStreams streams;
};

}  // namespace tensorpool
