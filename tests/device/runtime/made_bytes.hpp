#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tensorpool/device/device_allocation.hpp>

namespace tensorpool {

/// Returns bytes that differ from their neighbours and from those of other seeds.
inline std::vector<std::byte> made_bytes(std::size_t count, unsigned seed = 0) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) {
        bytes[i] = static_cast<std::byte>((i * 167 + seed * 71 + (i >> 8)) & 0xff);
    }
    return bytes;
}

/// Returns all bytes of the memory.
template <class Memory>
std::vector<std::byte> content_of(const Memory& memory) {
    std::vector<std::byte> bytes(memory.size());
    memory.get(0, bytes);
    return bytes;
}

}  // namespace tensorpool
