#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <tensorpool/device/simulated_kernel.hpp>

namespace tensorpool::device {

/// Work that is given to a stream.
struct Work {
    std::string label;
    std::vector<MemoryRange> reads;
    std::vector<MemoryRange> writes;
    std::function<void()> run;   // outside of the lock
    std::function<void()> then;  // under it, after that
    std::uint64_t duration_ns = 0;
    bool opaque = false;  // it may touch anything
};

}  // namespace tensorpool::device
