#include <tensorpool/device/simulated_backend.hpp>

#include <utility>

#include "simulation/simulation.hpp"

namespace tensorpool {

using device::Simulation;
using device::SimulationLock;

// This file has the functions for the backend as a whole, its devices, and what only a simulation
// has. The others are in simulated_memory_calls.cpp, simulated_stream_calls.cpp,
// simulated_copies.cpp and simulated_capture_calls.cpp.

SimulatedBackend::SimulatedBackend(const SimulationOptions& options)
    : simulation_(std::make_unique<Simulation>(options, nullptr)) {}

SimulatedBackend::SimulatedBackend(const SimulationOptions& options, device::ScheduleDriver& driver)
    : simulation_(std::make_unique<Simulation>(options, &driver)) {}

SimulatedBackend::~SimulatedBackend() = default;

DeviceType SimulatedBackend::type() const noexcept {
    return DeviceType::simulated;
}

int SimulatedBackend::device_count() noexcept {
    return simulation_->options.devices;
}

std::string SimulatedBackend::device_name(int device) {
    if (!simulation_->is_device(device)) return "";
    return "Simulated device " + std::to_string(device);
}

DeviceAbilities SimulatedBackend::abilities(int device) noexcept {
    DeviceAbilities abilities;
    if (!simulation_->is_device(device)) return abilities;
    const SimulationOptions& options = simulation_->options;
    abilities.unified_memory = options.unified_memory;
    abilities.shared_storage = options.shared_storage;
    abilities.managed_storage = options.managed_storage;
    abilities.managed_advice = options.managed_storage;
    abilities.virtual_memory = options.virtual_memory;
    abilities.stream_ordered_allocation = options.stream_ordered_allocation;
    abilities.graph_capture = options.graph_capture;
    abilities.late_free_size = options.late_free_size;
    abilities.watches_blocks = options.watches_blocks && options.finds_hazards;
    abilities.largest_allocation = options.largest_allocation;
    abilities.granularity = options.virtual_memory ? options.granularity : 0;
    abilities.recommended_bytes = options.recommended_bytes;
    return abilities;
}

DeviceStatus SimulatedBackend::memory_info(int device, DeviceMemoryInfo& info) noexcept {
    return simulation_->call(SimulatedCall::memory_info, device,
                             [&](auto& s, auto&) { info = s.memory.share(device).info(); });
}

DeviceStatus SimulatedBackend::settle_memory(int device) noexcept {
    return simulation_->call(SimulatedCall::settle_memory, device,
                             [&](auto& s, auto&) { s.memory.share(device).late = 0; });
}

DeviceStatus SimulatedBackend::synchronize_device(int device) noexcept {
    return simulation_->call(SimulatedCall::synchronize_device, device,
                             [&](auto& s, auto& lock) { s.synchronize(lock, device); });
}

std::string SimulatedBackend::last_error() {
    const std::lock_guard guard(simulation_->mutex);
    return simulation_->book.error();
}

// Functions that only a simulation has -----------------------------------------------------------

DeviceStatus SimulatedBackend::launch(int device, StreamHandle stream,
                                      const SimulatedKernel& kernel) noexcept {
    return simulation_->call(SimulatedCall::launch, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        device::Work work;
        work.label = kernel.label;
        work.reads = kernel.reads;
        work.writes = kernel.writes;
        work.run = kernel.function;
        work.opaque = kernel.function && kernel.reads.empty() && kernel.writes.empty();
        work.duration_ns = kernel.duration_ns;
        s.give(lock, *found, std::move(work));
    });
}

bool SimulatedBackend::step(int device, StreamHandle stream) noexcept {
    SimulationLock lock(simulation_->mutex);
    if (!simulation_->is_device(device)) return false;
    const auto found = simulation_->streams.find(device, stream);
    return found != nullptr && simulation_->scheduler.step(lock, *found);
}

void SimulatedBackend::host_read(const void* address, std::size_t bytes,
                                 const char* label) noexcept {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->host_touch(label, {{address, bytes}}, {});
}

void SimulatedBackend::host_write(void* address, std::size_t bytes, const char* label) noexcept {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->host_touch(label, {}, {{address, bytes}});
}

std::vector<Hazard> SimulatedBackend::hazards() const {
    const std::lock_guard guard(simulation_->mutex);
    return simulation_->watch.log.kept();
}

std::uint64_t SimulatedBackend::hazard_count() const noexcept {
    const std::lock_guard guard(simulation_->mutex);
    return simulation_->watch.log.count();
}

void SimulatedBackend::clear_hazards() noexcept {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->watch.log.clear();
}

std::string SimulatedBackend::hazard_report() const {
    std::string text;
    for (const Hazard& hazard : hazards()) text += to_string(hazard) + '\n';
    return text;
}

SimulatedCalls SimulatedBackend::calls() const noexcept {
    const std::lock_guard guard(simulation_->mutex);
    return simulation_->book.calls();
}

void SimulatedBackend::reset_calls() noexcept {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->book.reset_calls();
}

void SimulatedBackend::set_faults(const SimulationFaults& faults) {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->book.set_faults(faults);
}

void SimulatedBackend::set_other_process_bytes(int device, std::size_t bytes) noexcept {
    const std::lock_guard guard(simulation_->mutex);
    if (simulation_->is_device(device)) simulation_->memory.share(device).others = bytes;
}

std::uint64_t SimulatedBackend::now_ns() const noexcept {
    const std::lock_guard guard(simulation_->mutex);
    return simulation_->ordering.now_ns();
}

void SimulatedBackend::advance_ns(std::uint64_t ns) noexcept {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->ordering.spend(ns);
}

}  // namespace tensorpool
