#pragma once

#include <array>
#include <type_traits>

#include <tensorpool/device/shared_block.hpp>

#include "platform/process/socket_files.hpp"

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

/// The message by which a block is handed over, beside its descriptor. Both processes run on one
/// machine, so the order of bytes is the same.
struct SharedBlockMessage {
    static constexpr std::array<char, 8> right_magic = {'t', 'p', 's', 'h', 'a', 'r', 'e', 'd'};
    static constexpr std::uint32_t right_version = 1;

    std::array<char, 8> magic = right_magic;
    std::uint32_t version = right_version;
    std::uint32_t unused = 0;
    std::array<char, 32> device = {};  // as text, which ends with a zero
    std::uint64_t bytes = 0;
};
static_assert(sizeof(SharedBlockMessage) == 56 && std::is_trivially_copyable_v<SharedBlockMessage>);

/// Throws DeviceError unless both ends of a socket belong to one user. `call` is "send" or
/// "receive".
void check_users(const char* call, const platform::SocketUsers& users);

}  // namespace tensorpool::device
