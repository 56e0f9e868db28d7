#pragma once

/// @file
/// Writes a trace file whose payloads are zstd frames.

#include <cstdint>
#include <memory>
#include <string>

#include <tensorpool/live_trace.hpp>

namespace tensorpool::command::trace {

/// One thread's. Any number of processes may be written into one file; entries of the same process
/// and ring are gathered to chunks of some 100 KiB at least, until `flush`.
class TraceWriter {
public:
    /// Makes the file with mode 0600, or replaces the one that stands there. Throws CommandError
    /// where that cannot be.
    explicit TraceWriter(const std::string& path);
    TraceWriter(TraceWriter&&) noexcept;
    TraceWriter& operator=(TraceWriter&&) noexcept;
    /// Flushes, without a word of what fails.
    ~TraceWriter();

    /// What a look at `process` brought. After a write that failed it does nothing.
    void add(std::uint64_t process, const TracePart& part);
    /// The recording of the process ended in order.
    void end(std::uint64_t process);
    /// Everything added so far stands in the file then, as whole chunks.
    void flush();

    /// Why writing stopped, as "no space left on device"; "" while it goes on.
    const std::string& problem() const noexcept;
    std::uint64_t entries() const noexcept;        ///< added
    std::uint64_t dropped() const noexcept;        ///< by rings that were full
    std::uint64_t written_bytes() const noexcept;  ///< the file's

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool::command::trace
