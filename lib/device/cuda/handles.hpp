#pragma once

#include <tensorpool/device/backend.hpp>

#include <cstdint>

#include "device/cuda/driver_types.hpp"

namespace tensorpool::device::cuda {

// The backend's handles are the driver's under another name.

inline Stream driver_stream(StreamHandle stream) noexcept {
    return reinterpret_cast<Stream>(stream);
}
inline Event driver_event(EventHandle event) noexcept {
    return reinterpret_cast<Event>(event);
}
inline GraphExec driver_graph(GraphHandle graph) noexcept {
    return reinterpret_cast<GraphExec>(graph);
}
inline MemoryNumber driver_memory(MemoryHandle memory) noexcept {
    return reinterpret_cast<std::uintptr_t>(memory);
}
inline DeviceAddress driver_address(const void* address) noexcept {
    return reinterpret_cast<std::uintptr_t>(address);
}
inline void* pointer_of(DeviceAddress address) noexcept {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace tensorpool::device::cuda
