#pragma once

/// @file
/// How a pool or an arena grows.

#include <cstddef>

namespace tensorpool {

/// The size of each growth: `max(step, capacity * factor, shortfall)` bytes.
///
/// The shortfall is what the present request lacks. The surplus above it never raises the memory
/// that tensorpool has committed in this process beyond `fraction` of the memory available to the
/// process. The shortfall itself may use all of the available memory.
struct GrowthPolicy {
    /// The smallest growth, in bytes.
    std::size_t step = std::size_t{4} << 20;
    /// The smallest growth as a multiple of the present capacity: 0.125 grows by an eighth. Larger
    /// values save system calls and commit memory that may not be needed.
    double factor = 0.0;
    /// The part of the available memory, from 0 to 1, up to which the surplus may go.
    double fraction = 0.75;

    /// Returns a policy that grows by max(64 MiB, capacity, shortfall) bytes: it doubles the
    /// capacity, from 64 MiB on. The formula is {step 64 MiB, factor 1.0}.
    static constexpr GrowthPolicy conservative() noexcept {
        return {.step = std::size_t{64} << 20, .factor = 1.0, .fraction = 0.75};
    }
    /// Returns a policy that grows by max(2 GiB, capacity, shortfall) bytes: by the larger of 2 GiB
    /// and the present capacity. The formula is {step 2 GiB, factor 1.0}.
    static constexpr GrowthPolicy doubling() noexcept {
        return {.step = std::size_t{2} << 30, .factor = 1.0, .fraction = 0.75};
    }
    /// Returns a policy that grows by max(2 GiB, 2 × capacity, shortfall) bytes, for large models:
    /// it triples the capacity, from 2 GiB on. The formula is {step 2 GiB, factor 2.0}.
    static constexpr GrowthPolicy aggressive() noexcept {
        return {.step = std::size_t{2} << 30, .factor = 2.0, .fraction = 0.75};
    }
};

}  // namespace tensorpool
