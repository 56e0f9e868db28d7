#pragma once

/// @file
/// The file of --trace, with the recordings of all processes of the program.

#include <cstdint>
#include <string>

#include <tensorpool/live_trace.hpp>

#include "trace/trace_writer.hpp"

namespace tensorpool::command::run {

class TraceOutput {
public:
    /// Throws CommandError if the file cannot be created.
    explicit TraceOutput(const std::string& path) : path_(path), writer_(path) {}

    /// Reads the entries since the last call, and returns their number. `process` is its number
    /// among all recorded processes. Throws AttachError if the shared memory is damaged.
    std::size_t look(std::uint64_t process, LiveTrace& trace);
    /// Reads a process for the last time, because it has ended or its recording has.
    void finish(std::uint64_t process, LiveTrace& trace);
    /// Whether the file cannot be written further.
    bool is_full() const noexcept { return !writer_.problem().empty(); }
    void flush() { writer_.flush(); }

    /// Returns "1,234 entries in FILE, 12 MiB", and what is missing.
    std::string text() const;
    const trace::TraceWriter& writer() const noexcept { return writer_; }
    const std::string& path() const noexcept { return path_; }
    std::uint64_t threads_left_out() const noexcept { return threads_left_out_; }

private:
    std::string path_;
    trace::TraceWriter writer_;
    std::uint64_t threads_left_out_ = 0;
};

}  // namespace tensorpool::command::run
