#include <tensorpool/device/simulated_backend.hpp>

#include "simulation/simulation.hpp"

namespace tensorpool {

using device::Allocation;
using device::Simulation;
using device::SimulationLock;

namespace {

DeviceStatus check_request(Simulation& s, std::size_t bytes) {
    if (bytes == 0) return s.refuse(DeviceStatus::invalid_argument, "0 bytes");
    const std::size_t most = s.book.faults().largest_request;
    if (most != 0 && bytes > most)
        return s.refuse(DeviceStatus::out_of_memory, "a fault on demand");
    return DeviceStatus::ok;
}

bool knows(const SimulationOptions& options, StorageKind kind) noexcept {
    if (kind == StorageKind::shared) return options.shared_storage;
    return kind == StorageKind::private_storage || options.managed_storage;
}

// What `deallocate` may end at this address, or nullptr.
const Allocation* ending(Simulation& s, int device, void* memory, std::size_t bytes) {
    const Allocation* const found = s.memory.find_exact(reinterpret_cast<std::uintptr_t>(memory));
    if (found == nullptr || found->origin != Allocation::Origin::device) return nullptr;
    const bool right = found->device == device && found->bytes == bytes && !found->ending;
    return right ? found : nullptr;
}

DeviceStatus no_memory(Simulation& s, int device, std::size_t bytes) {
    return s.refuse(DeviceStatus::out_of_memory,
                    std::to_string(bytes) + " bytes asked, " +
                        std::to_string(s.memory.info(device).free_bytes) + " free");
}

}  // namespace

DeviceStatus SimulatedBackend::allocate(int device, std::size_t bytes, StorageKind kind,
                                        void** memory) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::allocate, device, [&](SimulationLock&) {
        const DeviceStatus status = check_request(s, bytes);
        if (status != DeviceStatus::ok) return status;
        if (!knows(s.options, kind)) return DeviceStatus::not_supported;
        const std::size_t most = s.options.largest_allocation;
        if (most != 0 && bytes > most) return no_memory(s, device, bytes);
        void* const found = s.memory.allocate(device, bytes, kind);
        if (found == nullptr) return no_memory(s, device, bytes);
        s.paint(found, bytes, Simulation::Paint::fresh);
        const auto address = reinterpret_cast<std::uintptr_t>(found);
        s.lives.begin(s.watch.host_operation("allocate"), address, bytes,
                      s.memory.find(address)->host_reaches);
        *memory = found;
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::deallocate(int device, void* memory, std::size_t bytes,
                                          StorageKind kind) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::deallocate, device, [&](SimulationLock& lock) {
        const Allocation* const found = ending(s, device, memory, bytes);
        if (found == nullptr || found->kind != kind) {
            s.wrong_end("deallocate", memory);
            return s.refuse(DeviceStatus::invalid_argument, "no such allocation");
        }
        s.end_life(lock, reinterpret_cast<std::uintptr_t>(memory), "deallocate");
        s.memory.end(reinterpret_cast<std::uintptr_t>(memory));
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                              void** memory) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::allocate_async, device, [&](SimulationLock&) {
        if (!s.options.stream_ordered_allocation) return DeviceStatus::not_supported;
        const auto on = s.stream(device, stream);
        if (on == nullptr) return s.no_stream();
        if (on->capture != nullptr) return s.illegal(on->capture.get(), "allocate_async");
        const DeviceStatus status = check_request(s, bytes);
        if (status != DeviceStatus::ok) return status;
        void* const found = s.memory.allocate(device, bytes, StorageKind::private_storage);
        if (found == nullptr) return no_memory(s, device, bytes);
        s.paint(found, bytes, Simulation::Paint::fresh);
        s.lives.begin_on_stream(s.next_operation(*on, "allocate_async"),
                                reinterpret_cast<std::uintptr_t>(found), bytes);
        *memory = found;
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::deallocate_async(int device, void* memory, std::size_t bytes,
                                                StreamHandle stream) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::deallocate_async, device, [&](SimulationLock& lock) {
        if (!s.options.stream_ordered_allocation) return DeviceStatus::not_supported;
        const auto found = s.stream(device, stream);
        if (found == nullptr) return s.no_stream();
        if (found->capture != nullptr) return s.illegal(found->capture.get(), "deallocate_async");
        if (ending(s, device, memory, bytes) == nullptr) {
            s.wrong_end("deallocate_async", memory);
            return s.refuse(DeviceStatus::invalid_argument, "no such allocation");
        }
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        const device::Operation operation = s.next_operation(*found, "deallocate_async");
        (void)s.lives.end(operation, address, found->clock);
        s.memory.begin_end(address);
        device::Work work;
        work.then = [&s, address] { s.memory.end(address); };
        s.enqueue(lock, *found, std::move(work));
        return DeviceStatus::ok;
    });
}

void* SimulatedBackend::host_pointer(int device, void* memory) noexcept {
    void* found = nullptr;
    (void)simulation_->call(SimulatedCall::host_pointer, device, [&](SimulationLock&) {
        const Allocation* const there =
            simulation_->memory.find(reinterpret_cast<std::uintptr_t>(memory));
        const bool reached = there != nullptr && there->host_reaches && !there->on_host();
        if (reached && there->device == device) found = memory;
        return DeviceStatus::ok;
    });
    return found;
}

// Pinned host memory -----------------------------------------------------------------------------

DeviceStatus SimulatedBackend::allocate_pinned(int device, std::size_t bytes,
                                               void** memory) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::allocate_pinned, device, [&](SimulationLock&) {
        if (bytes == 0) return s.refuse(DeviceStatus::invalid_argument, "0 bytes");
        void* const found = s.memory.allocate_pinned(device, bytes);
        if (found == nullptr) return s.refuse(DeviceStatus::out_of_memory, "the host has no more");
        s.paint(found, bytes, Simulation::Paint::fresh);
        s.lives.begin(s.watch.host_operation("allocate_pinned"),
                      reinterpret_cast<std::uintptr_t>(found), bytes, true);
        *memory = found;
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::deallocate_pinned(int device, void* memory,
                                                 std::size_t bytes) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::deallocate_pinned, device, [&](SimulationLock& lock) {
        const Allocation* const found =
            s.memory.find_exact(reinterpret_cast<std::uintptr_t>(memory));
        if (found == nullptr || found->origin != Allocation::Origin::pinned ||
            found->bytes != bytes) {
            s.wrong_end("deallocate_pinned", memory);
            return s.refuse(DeviceStatus::invalid_argument, "no such pinned memory");
        }
        s.end_life(lock, reinterpret_cast<std::uintptr_t>(memory), "deallocate_pinned");
        s.memory.end(reinterpret_cast<std::uintptr_t>(memory));
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::register_pinned(int device, void* memory,
                                               std::size_t bytes) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::register_pinned, device, [&](SimulationLock&) {
        if (memory == nullptr || bytes == 0) {
            return s.refuse(DeviceStatus::invalid_argument, "nothing to register");
        }
        if (!s.memory.register_pinned(device, memory, bytes)) {
            return s.refuse(DeviceStatus::invalid_argument, "a part of it is registered already");
        }
        s.lives.begin(s.watch.host_operation("register_pinned"),
                      reinterpret_cast<std::uintptr_t>(memory), bytes, true);
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::unregister_pinned(int device, void* memory) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::unregister_pinned, device, [&](SimulationLock& lock) {
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        const Allocation* const found = s.memory.find_exact(address);
        if (found == nullptr || found->origin != Allocation::Origin::registered) {
            return s.refuse(DeviceStatus::invalid_argument, "it is not registered");
        }
        s.end_life(lock, address, "unregister_pinned", device::LifeKeeper::Gone::yes);
        s.memory.end(address);
        return DeviceStatus::ok;
    });
}

}  // namespace tensorpool
