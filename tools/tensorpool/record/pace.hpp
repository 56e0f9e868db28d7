#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace tensorpool::command::record {

/// How long to sleep between two reads of the rings of a process, which hold 16,384 entries each. A
/// read that finds many entries shortens the pause, one that finds few lengthens it.
class Pace {
public:
    /// `max` is the number of entries that the fullest ring held at the last read.
    void note(std::size_t max) noexcept {
        if (max > much) pause_ = std::max(pause_ / 2, shortest);
        if (max < little) pause_ = std::min(pause_ * 2, longest);
    }
    std::chrono::nanoseconds pause() const noexcept { return pause_; }

private:
    static constexpr std::size_t much = 4096;
    static constexpr std::size_t little = 1024;
    static constexpr std::chrono::nanoseconds shortest = std::chrono::microseconds(50);
    static constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds(8);

    std::chrono::nanoseconds pause_ = std::chrono::milliseconds(1);
};

}  // namespace tensorpool::command::record
