// Work of the CPU: copies, fills, and graphs of both.

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/host/host_state.hpp"

namespace tensorpool {

using device::HostGraph;
using device::HostStream;
using device::refuse;

namespace {

/// Pageable memory of up to this size is copied at once, without a wait for the stream. It is the
/// size for which CUDA does so (CUDA C++ Programming Guide, "Concurrent Execution between Host and
/// Device").
constexpr std::size_t max_staged_bytes = std::size_t{64} << 10;

void check_range(const char* what, const void* memory, std::size_t bytes) {
    if (memory != nullptr || bytes == 0) return;
    refuse(std::string(what) + " is nullptr, expected " + std::to_string(bytes) + " B of memory");
}

void check_copy(CopyKind kind, const void* to, const void* from, std::size_t bytes) {
    if (kind > CopyKind::device_to_device) {
        refuse("copy kind " + std::to_string(static_cast<int>(kind)) + " is unknown");
    }
    check_range("to", to, bytes);
    check_range("from", from, bytes);
}

HostStream::Work copy_of(void* to, const void* from, std::size_t bytes) {
    return [to, from, bytes] { std::memcpy(to, from, bytes); };
}

/// Returns a copy whose source may change from now on.
HostStream::Work staged_copy_of(void* to, const void* from, std::size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(from);
    return [to, taken = std::vector<std::byte>(begin, begin + bytes)] {
        std::memcpy(to, taken.data(), taken.size());
    };
}

}  // namespace

// Copies and fills -------------------------------------------------------------------------------

DeviceStatus HostBackend::copy(int device, CopyKind kind, void* to, const void* from,
                               std::size_t bytes) noexcept {
    return state_->call("copy", device, [&] {
        check_copy(kind, to, from, bytes);
        if (bytes == 0) return;
        state_->wait_for(state_->streams.find(nullptr));
        std::memcpy(to, from, bytes);
    });
}

DeviceStatus HostBackend::copy_async(int device, CopyKind kind, void* to, const void* from,
                                     std::size_t bytes, StreamHandle stream) noexcept {
    return state_->call("copy_async", device, [&] {
        HostStream& worker = state_->streams.find(stream);
        check_copy(kind, to, from, bytes);
        if (bytes == 0) return;
        HostStream::Work copy = copy_of(to, from, bytes);
        // A graph reads and writes the memory at each launch.
        if (state_->captures.keep(worker, copy)) return;
        const bool to_device = kind == CopyKind::host_to_device;
        const bool from_device = kind == CopyKind::device_to_host;
        const bool is_pageable = (to_device && !state_->pinned.contains(from, bytes)) ||
                                 (from_device && !state_->pinned.contains(to, bytes));
        if (!is_pageable) {
            worker.give(std::move(copy));
        } else if (to_device && bytes <= max_staged_bytes) {
            worker.give(staged_copy_of(to, from, bytes));
        } else {
            worker.wait_until(worker.give(std::move(copy)));
        }
    });
}

DeviceStatus HostBackend::fill(int device, void* memory, std::uint8_t byte,
                               std::size_t bytes) noexcept {
    return state_->call("fill", device, [&] {
        check_range("memory", memory, bytes);
        if (bytes == 0) return;
        state_->wait_for(state_->streams.find(nullptr));
        std::memset(memory, byte, bytes);
    });
}

DeviceStatus HostBackend::fill_async(int device, void* memory, std::uint8_t byte, std::size_t bytes,
                                     StreamHandle stream) noexcept {
    return state_->call("fill_async", device, [&] {
        HostStream& worker = state_->streams.find(stream);
        check_range("memory", memory, bytes);
        if (bytes != 0)
            state_->give(worker, [memory, byte, bytes] { std::memset(memory, byte, bytes); });
    });
}

// Graph capture ----------------------------------------------------------------------------------

DeviceStatus HostBackend::begin_capture(int device, StreamHandle stream) noexcept {
    return state_->call("begin_capture", device,
                        [&] { state_->captures.begin(state_->streams.find(stream)); });
}

DeviceStatus HostBackend::end_capture(int device, StreamHandle stream,
                                      GraphHandle* graph) noexcept {
    return state_->call("end_capture", device, [&] {
        auto made =
            std::make_shared<const HostGraph>(state_->captures.end(state_->streams.find(stream)));
        *graph = state_->graphs.add([&](auto& kept) { kept = std::move(made); });
    });
}

const std::atomic<unsigned>& HostBackend::captures_under_way() const noexcept {
    return state_->captures.count();
}

DeviceStatus HostBackend::capture_state(int device, StreamHandle stream,
                                        CaptureState& state) noexcept {
    return state_->call("capture_state", device,
                        [&] { state = state_->captures.state(state_->streams.find(stream)); });
}

DeviceStatus HostBackend::launch_graph(int device, GraphHandle graph,
                                       StreamHandle stream) noexcept {
    return state_->call("launch_graph", device, [&] {
        HostStream& worker = state_->streams.find(stream);
        // Submitted as one piece of work, which keeps the graph alive until it is done.
        state_->give(worker, [work = state_->graph_of(graph)] {
            for (const HostStream::Work& piece : *work) piece();
        });
    });
}

DeviceStatus HostBackend::destroy_graph(int device, GraphHandle graph) noexcept {
    return state_->call("destroy_graph", device, [&] {
        auto* const kept = state_->graphs.find(graph);
        if (kept == nullptr || !state_->graphs.end(graph)) State::refuse_graph(graph);
        *kept = nullptr;
        state_->graphs.recycle(graph);
    });
}

}  // namespace tensorpool
