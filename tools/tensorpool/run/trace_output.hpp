#pragma once

/// @file
/// --trace: what the processes of the program recorded, in one file.

#include <cstdint>
#include <string>

#include <tensorpool/live_trace.hpp>

#include "trace/trace_writer.hpp"

namespace tensorpool::command::run {

class TraceOutput {
public:
    /// Throws CommandError where the file cannot be made.
    explicit TraceOutput(const std::string& path) : path_(path), writer_(path) {}

    /// Takes out what came since the last look; returns how many entries. `process` is its number
    /// among all that are recorded. Throws AttachError where what is there is damaged.
    std::size_t look(std::uint64_t process, LiveTrace& trace);
    /// The last look at a process that has ended, or that is to record no more.
    void finish(std::uint64_t process, LiveTrace& trace);
    /// The file takes no more.
    bool is_full() const noexcept { return !writer_.problem().empty(); }
    void flush() { writer_.flush(); }

    /// "1,234 entries of 2 processes in FILE, 12 MiB", and what is missing.
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
