#pragma once

/// @file
/// Writes a trace file with payloads compressed by zstd.

#include <tensorpool/live_trace.hpp>

namespace tensorpool::command::trace {

/// Used by one thread. One file can hold any number of processes. Entries of the same process and
/// ring are collected into chunks of at least 100 KiB, until `flush`.
class TraceWriter {
public:
    /// Creates the file with mode 0600, or replaces an existing one. Throws CommandError if that
    /// fails.
    explicit TraceWriter(const std::string& path);
    TraceWriter(TraceWriter&&) noexcept;
    TraceWriter& operator=(TraceWriter&&) noexcept;
    /// Flushes; errors are ignored.
    ~TraceWriter();

    /// Adds data read from `process`. Does nothing after a failed write.
    void add(std::uint64_t process, const TracePart& part);
    /// Marks the recording of the process as properly ended.
    void end(std::uint64_t process);
    /// Writes everything added so far to the file, as complete chunks.
    void flush();

    /// Why writing stopped, for example "no space left on device"; "" if it has not.
    const std::string& problem() const noexcept;
    std::uint64_t entries() const noexcept;        ///< entries added
    std::uint64_t dropped() const noexcept;        ///< entries lost because rings were full
    std::uint64_t written_bytes() const noexcept;  ///< size of the file

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool::command::trace
