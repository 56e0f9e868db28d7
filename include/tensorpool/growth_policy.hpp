#pragma once

/// @file
/// How a pool or an arena grows.

#include <cstddef>

namespace tensorpool {

/// Growth is by `max(step, capacity * factor, shortfall)` bytes. The surplus over the shortfall
/// never takes what tensorpool has committed in this process past `fraction` of the memory that is
/// available to it; the bare shortfall may, up to all of it.
struct GrowthPolicy {
    /// The smallest growth, in bytes.
    std::size_t step = std::size_t{4} << 20;
    /// The smallest growth as a multiple of the present capacity: 0.125 grows by an eighth. Larger
    /// ones save calls to the system and commit what may not be needed.
    double factor = 0.0;
    /// Of the available memory, from 0 to 1: how far the surplus may go.
    double fraction = 0.75;

    /// Steps of 64 MiB or the present capacity again, whichever is more.
    static constexpr GrowthPolicy conservative() noexcept {
        return {.step = std::size_t{64} << 20, .factor = 1.0, .fraction = 0.75};
    }
    /// Steps of 2 GiB or twice the present capacity: for large models.
    static constexpr GrowthPolicy aggressive() noexcept {
        return {.step = std::size_t{2} << 30, .factor = 2.0, .fraction = 0.75};
    }
};

}  // namespace tensorpool
