#pragma once

#include <cstddef>

#include "platform/platform.hpp"

namespace tensorpool::statistics {

/// Where the segment's memory comes from: a memfd, or by TENSORPOOL_STATISTICS_DIR a file there, or
/// the process's own memory with TENSORPOOL_STATISTICS=off and where the system shares none. Looks
/// at the variables once, and tells on stderr what makes no sense.
class SegmentMemory {
public:
    constexpr SegmentMemory() noexcept = default;

    /// Zeros; no address when the system has no memory.
    platform::SharedMemory get() noexcept;
    /// The process's own memory in place of what `get` gave, of which the system has not the pages.
    platform::SharedMemory get_private_instead(const platform::SharedMemory& given) noexcept;
    /// What was given last is the segment now: its file, if it has a path, goes at exit.
    void use(const platform::SharedMemory& memory) noexcept;
    const platform::SharedMemory& used() const noexcept { return used_; }
    void remove_file() noexcept;

private:
    void look() noexcept;

    enum class Sharing : unsigned char { unknown, none, memfd, folder };
    Sharing sharing_ = Sharing::unknown;
    char folder_[480] = {};
    platform::SharedMemory used_;
};

}  // namespace tensorpool::statistics
