#pragma once

#include <cstddef>

namespace tensorpool::platform {

/// A file to which several threads append pieces. Neither throws nor allocates.
class TraceOutput {
public:
    constexpr TraceOutput() noexcept = default;
    TraceOutput(const TraceOutput&) = delete;
    TraceOutput& operator=(const TraceOutput&) = delete;

    /// Creates the file, or empties an existing one that no process is writing. If another process
    /// is writing it, the number of this process is added to the name (`trace.tpt.4711`). The file
    /// is readable by this user only. Returns false on failure and sets `problem` to the system's
    /// message. Always fails in a program that has more rights than the user who started it
    /// (setuid).
    [[nodiscard]] bool open(const char* path) noexcept;
    bool is_open() const noexcept { return file_ >= 0; }
    /// Closes the file and releases its lock. REQUIRES: no other thread is writing.
    void close() noexcept;

    struct Part {
        const void* data;
        std::size_t bytes;
    };
    /// Appends both parts as one piece, which pieces of other threads do not interrupt. Returns
    /// false on failure, such as a full disk; a part of the piece may then have been written.
    [[nodiscard]] bool append(Part first, Part second) noexcept;

    const char* path() const noexcept { return path_; }
    const char* problem() const noexcept { return problem_; }

private:
    int file_ = -1;
    char path_[512] = {};
    char problem_[128] = {};
};

}  // namespace tensorpool::platform
