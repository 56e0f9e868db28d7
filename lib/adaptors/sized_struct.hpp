#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

namespace tensorpool::adaptors {

/// The largest size that is accepted for a struct of the C interface. These structs begin with
/// their own size and grow at their end, so that a caller may be older or newer than the library.
/// No version is larger than this: a larger value was never set.
inline constexpr std::size_t largest_struct_bytes = 4096;

/// Throws std::invalid_argument unless `bytes` can be the size of a version of the struct.
inline void check_struct_bytes(const char* name, std::size_t bytes,
                               std::size_t first_version_bytes) {
    if (bytes >= first_version_bytes && bytes <= largest_struct_bytes) return;
    throw std::invalid_argument("struct_bytes is " + std::to_string(bytes) +
                                " B, expected sizeof(" + name + "), " +
                                std::to_string(first_version_bytes) + " B in the first version");
}

/// Copies the fields that this version knows into a caller's struct of `bytes` bytes, and sets the
/// rest of it to zero.
template <class Struct>
void copy_out(const Struct& ours, Struct* theirs, std::size_t bytes) {
    std::memcpy(theirs, &ours, std::min(bytes, sizeof ours));
    if (bytes > sizeof ours) {
        std::memset(reinterpret_cast<std::byte*>(theirs) + sizeof ours, 0, bytes - sizeof ours);
    }
}

}  // namespace tensorpool::adaptors
