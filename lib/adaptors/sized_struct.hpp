#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

namespace tensorpool::adaptors {

/// Structs of the C interface begin with their own size and grow at their end, so that a caller may
/// be older or newer than the library. No version of them is larger than this: a size beyond is one
/// that nobody set.
inline constexpr std::size_t largest_struct_bytes = 4096;

/// Throws std::invalid_argument unless `bytes` may be the size of some version of the struct.
inline void check_struct_bytes(const char* name, std::size_t bytes,
                               std::size_t first_version_bytes) {
    if (bytes >= first_version_bytes && bytes <= largest_struct_bytes) return;
    throw std::invalid_argument("struct_bytes is " + std::to_string(bytes) +
                                " B, expected sizeof(" + name + "), " +
                                std::to_string(first_version_bytes) + " B in the first version");
}

/// Gives a caller whose struct has `bytes` what this version knows, and zeros behind it.
template <class Struct>
void copy_out(const Struct& ours, Struct* theirs, std::size_t bytes) {
    std::memcpy(theirs, &ours, std::min(bytes, sizeof ours));
    if (bytes > sizeof ours) {
        std::memset(reinterpret_cast<std::byte*>(theirs) + sizeof ours, 0, bytes - sizeof ours);
    }
}

}  // namespace tensorpool::adaptors
