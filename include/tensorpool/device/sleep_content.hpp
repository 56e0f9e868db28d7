#pragma once

/// @file
/// What becomes of the content of device memory while its allocator sleeps.

#include <cstdint>

namespace tensorpool {

/// What becomes of the content of blocks in use while an allocator sleeps.
enum class SleepContent : std::uint8_t {
    /// It is copied to host memory, and back when the allocator wakes.
    kept,
    /// It is lost. The addresses stay valid.
    dropped,
};

}  // namespace tensorpool
