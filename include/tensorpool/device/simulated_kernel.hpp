#pragma once

/// @file
/// Work for a simulated device: a function of the host with what it reads and writes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tensorpool {

struct MemoryRange {
    const void* address = nullptr;
    std::size_t bytes = 0;
};

/// A kernel. Its function runs over the real bytes at the simulated addresses, on the thread that
/// gives or waits for work, and may not call the backend; without one, only its ranges count. What
/// it touches beside its ranges is not seen. One that reads or writes memory which is not there is
/// reported and not run.
struct SimulatedKernel {
    std::string label = {};  ///< by which hazards name it
    std::vector<MemoryRange> reads = {};
    std::vector<MemoryRange> writes = {};  ///< what it both reads and writes stands in both
    std::function<void()> function = {};
    std::uint64_t duration_ns = 0;  ///< on the simulation's clock
};

}  // namespace tensorpool
