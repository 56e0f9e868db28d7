#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace tensorpool::command::record {

/// How long to sleep between two looks at the rings of a process, which hold 16,384 entries each.
/// A look that found much makes it shorter, one that found little longer.
class Pace {
public:
    /// `most` is what the fullest ring brought at the last look.
    void note(std::size_t most) noexcept {
        if (most > much) pause_ = std::max(pause_ / 2, shortest);
        if (most < little) pause_ = std::min(pause_ * 2, longest);
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
