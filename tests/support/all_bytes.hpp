#pragma once

#include <cstddef>
#include <cstring>

namespace tensorpool::testing {

/// Returns whether all bytes have this value. The C library compares them, because loops in tests
/// are not optimized.
inline bool all_bytes_are(unsigned char value, const void* begin, std::size_t bytes) {
    const auto* const first = static_cast<const unsigned char*>(begin);
    // They are equal if each equals the next.
    return bytes == 0 || (*first == value && std::memcmp(first, first + 1, bytes - 1) == 0);
}

}  // namespace tensorpool::testing
