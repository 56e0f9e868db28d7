#pragma once

#include <cstddef>

#include <tensorpool/device/backend.hpp>

namespace tensorpool::device {

/// Maps the memory at addresses of its own, and stores them in `address`. On failure, which
/// `Backend::last_error` explains, nothing stays reserved.
inline DeviceStatus map_anywhere(Backend& backend, int device, std::size_t bytes,
                                 MemoryHandle memory, void*& address) noexcept {
    void* reserved = nullptr;
    DeviceStatus status = backend.reserve_addresses(device, bytes, &reserved);
    if (status != DeviceStatus::ok) return status;
    status = backend.map_memory(device, reserved, bytes, memory);
    if (status == DeviceStatus::ok) {
        address = reserved;
    } else {
        (void)backend.release_addresses(device, reserved, bytes);
    }
    return status;
}

}  // namespace tensorpool::device
