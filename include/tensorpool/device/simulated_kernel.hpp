#pragma once

/// @file
/// Work for a simulated device: a host function with the memory that it reads and writes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tensorpool {

/// A range of memory.
struct MemoryRange {
    /// The first address.
    const void* address = nullptr;
    /// The size, in bytes.
    std::size_t bytes = 0;
};

/// A kernel of a simulated device.
///
/// Its function runs over the real bytes at the simulated addresses, on the thread that submits
/// work or waits for it, and must not call the backend. Without a function only the ranges count.
/// Accesses outside of the ranges are not detected. A kernel that reads or writes memory that does
/// not exist is reported and not run.
struct SimulatedKernel {
    /// The name of the kernel in hazards.
    std::string label = {};
    /// The memory that it reads.
    std::vector<MemoryRange> reads = {};
    /// The memory that it writes. Memory that it reads and writes is in both lists.
    std::vector<MemoryRange> writes = {};
    /// The function; may be empty.
    std::function<void()> function = {};
    /// The duration on the simulation's clock, in nanoseconds.
    std::uint64_t duration_ns = 0;
};

}  // namespace tensorpool
