#include <tensorpool/device/simulated_backend.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "simulation/simulation.hpp"

namespace tensorpool {

using device::refuse;
using device::Work;

namespace {

std::uint64_t duration_ns(std::size_t bytes, double bytes_per_ns) noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) / bytes_per_ns);
}

double bandwidth(const SimulationOptions& options, CopyKind kind) noexcept {
    switch (kind) {
        case CopyKind::host_to_device:
            return options.host_to_device_bytes_per_ns;
        case CopyKind::device_to_host:
            return options.device_to_host_bytes_per_ns;
        case CopyKind::device_to_device:
            return options.device_to_device_bytes_per_ns;
        case CopyKind::host_to_host:
            break;
    }
    return options.host_to_host_bytes_per_ns;
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
