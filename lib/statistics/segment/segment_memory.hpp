#pragma once

#include "platform/platform.hpp"

namespace tensorpool::statistics {

/// Reports bad values of settings that layers above read. `events` implements it.
void check_other_settings() noexcept;

/// Provides the memory of the segment. It is a memfd, or a file in the folder of
/// TENSORPOOL_STATISTICS_DIR. It is private memory with TENSORPOOL_STATISTICS=off and if the system
/// cannot share memory. The variables are read once; invalid values are reported on stderr.
class SegmentMemory {
public:
    constexpr SegmentMemory() noexcept = default;

    /// Returns zeroed memory; a null address if the system has no memory.
    platform::SharedMemory get() noexcept;
    /// Replaces memory that `get` returned, but whose pages the system cannot provide, by private
    /// memory.
    platform::SharedMemory get_private_instead(const platform::SharedMemory& given) noexcept;
    /// Returns zeroed memory that is no file with a path; a null address if the system has no
    /// memory. Before a fork, the parent calls it for the child. If `has_path`, it is private
    /// memory, because the child makes its file itself, whose name is its number.
    platform::SharedMemory get_without_path() noexcept;
    bool has_path() const noexcept { return sharing_ == Sharing::folder; }
    /// Sets the memory that is now the segment. Its file, if it has a path, is removed at exit.
    void use(const platform::SharedMemory& memory) noexcept;
    const platform::SharedMemory& used() const noexcept { return used_; }
    void remove_file() noexcept;
    /// How many bytes of the segment are mapped; known once `get` was called.
    std::size_t bytes() const noexcept { return bytes_; }

private:
    void look() noexcept;
    platform::SharedMemory cut(const platform::SharedMemory& memory) const noexcept;

    enum class Sharing : unsigned char { unknown, none, memfd, folder };
    Sharing sharing_ = Sharing::unknown;
    std::size_t bytes_ = 0;
    char folder_[480] = {};
    platform::SharedMemory used_;
};

}  // namespace tensorpool::statistics
