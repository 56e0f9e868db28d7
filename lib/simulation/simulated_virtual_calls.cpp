#include <tensorpool/device/simulated_backend.hpp>

#include "base/alignment.hpp"
#include "simulation/simulation.hpp"

namespace tensorpool {

using device::SimulatedMemory;
using device::Simulation;
using device::SimulationLock;

namespace {

DeviceStatus check_range(Simulation& s, const void* address, std::size_t bytes) {
    if (!s.options.virtual_memory) return DeviceStatus::not_supported;
    const std::size_t granularity = s.options.granularity;
    if (bytes != 0 && base::is_aligned(bytes, granularity) &&
        base::is_aligned(address, granularity)) {
        return DeviceStatus::ok;
    }
    return s.refuse(DeviceStatus::invalid_argument,
                    "expected multiples of " + std::to_string(granularity) + " above 0");
}

void begin_mapping(Simulation& s, std::uintptr_t address, std::size_t bytes, MemoryHandle memory) {
    s.lives.begin(s.watch.host_operation("map_memory"), address, bytes, s.options.unified_memory);
    s.lives.restore(memory, address);
}

void end_mappings(Simulation& s, SimulationLock& lock, std::uintptr_t begin, std::uintptr_t end) {
    for (std::uintptr_t address = begin; address < end;) {
        const std::size_t bytes = s.memory.find(address)->bytes;
        s.lives.save(s.memory.mapped_at(address), address, bytes);
        s.end_life(lock, address, "unmap_memory");
        address += bytes;
    }
}

}  // namespace

DeviceStatus SimulatedBackend::reserve_addresses(int device, std::size_t bytes,
                                                 void** address) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::reserve_addresses, device, [&](SimulationLock&) {
        const DeviceStatus status = check_range(s, nullptr, bytes);
        if (status != DeviceStatus::ok) return status;
        void* const found = s.memory.reserve(device, bytes);
        if (found == nullptr) return s.refuse(DeviceStatus::out_of_memory, "no such address space");
        *address = found;
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::release_addresses(int device, void* address,
                                                 std::size_t bytes) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::release_addresses, device, [&](SimulationLock&) {
        const DeviceStatus status = check_range(s, address, bytes);
        if (status != DeviceStatus::ok) return status;
        if (!s.memory.release(address, bytes)) {
            return s.refuse(DeviceStatus::invalid_argument, "not reserved so, or in use");
        }
        s.lives.forget(reinterpret_cast<std::uintptr_t>(address), bytes);
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::create_memory(int device, std::size_t bytes,
                                             MemoryHandle* memory) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::create_memory, device, [&](SimulationLock&) {
        const DeviceStatus status = check_range(s, nullptr, bytes);
        if (status != DeviceStatus::ok) return status;
        const std::size_t most = s.book.faults().largest_request;
        MemoryHandle found = nullptr;
        if (most == 0 || bytes <= most) found = s.memory.create(device, bytes);
        if (found == nullptr) {
            return s.refuse(DeviceStatus::out_of_memory, std::to_string(bytes) + " bytes asked");
        }
        *memory = found;
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::destroy_memory(int device, MemoryHandle memory) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::destroy_memory, device, [&](SimulationLock&) {
        if (!s.options.virtual_memory) return DeviceStatus::not_supported;
        if (!s.memory.destroy(device, memory)) {
            return s.refuse(DeviceStatus::invalid_argument, "no such memory, or it is mapped");
        }
        s.lives.drop(memory);
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::map_memory(int device, void* address, std::size_t bytes,
                                          MemoryHandle memory) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::map_memory, device, [&](SimulationLock&) {
        const DeviceStatus status = check_range(s, address, bytes);
        if (status != DeviceStatus::ok) return status;
        switch (s.memory.map(device, address, bytes, memory)) {
            case SimulatedMemory::Mapped::yes:
                begin_mapping(s, reinterpret_cast<std::uintptr_t>(address), bytes, memory);
                return DeviceStatus::ok;
            case SimulatedMemory::Mapped::no_memory:
                return s.refuse(DeviceStatus::out_of_memory, "the host has no more");
            case SimulatedMemory::Mapped::not_there:
                break;
        }
        return s.refuse(DeviceStatus::invalid_argument,
                        "not whole unmapped memory at free reserved addresses");
    });
}

DeviceStatus SimulatedBackend::unmap_memory(int device, void* address, std::size_t bytes) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::unmap_memory, device, [&](SimulationLock& lock) {
        const DeviceStatus status = check_range(s, address, bytes);
        if (status != DeviceStatus::ok) return status;
        const auto begin = reinterpret_cast<std::uintptr_t>(address);
        if (!s.memory.can_unmap(device, begin, bytes)) {
            if (s.memory.find(begin) == nullptr) s.wrong_end("unmap_memory", address);
            return s.refuse(DeviceStatus::invalid_argument, "not one whole mapping or several");
        }
        end_mappings(s, lock, begin, begin + bytes);
        if (s.memory.unmap(begin, bytes)) return DeviceStatus::ok;
        return s.refuse(DeviceStatus::failed, "the host has no memory to keep the content in");
    });
}

}  // namespace tensorpool
