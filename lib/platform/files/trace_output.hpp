#pragma once

#include <cstddef>

namespace tensorpool::platform {

/// A file that threads append to, each a piece at a time. Neither throws nor allocates.
class TraceOutput {
public:
    constexpr TraceOutput() noexcept = default;
    TraceOutput(const TraceOutput&) = delete;
    TraceOutput& operator=(const TraceOutput&) = delete;

    /// Makes the file, or empties one that no process writes; where one does, its own number is
    /// added to the name (`trace.tpt.4711`). Readable by this user only. False on failure: then
    /// `problem` is the system's word for it. Always in a program with more rights than who started
    /// it (setuid).
    [[nodiscard]] bool open(const char* path) noexcept;
    bool is_open() const noexcept { return file_ >= 0; }
    /// Closes it, and lets others have it. Not while another thread writes.
    void close() noexcept;

    struct Part {
        const void* data;
        std::size_t bytes;
    };
    /// Appends both parts as one piece that no other thread's piece lies within. False on failure,
    /// as when the disk is full: a part of it may be there.
    [[nodiscard]] bool append(Part first, Part second) noexcept;

    const char* path() const noexcept { return path_; }
    const char* problem() const noexcept { return problem_; }

private:
    int file_ = -1;
    char path_[512] = {};
    char problem_[128] = {};
};

}  // namespace tensorpool::platform
