#pragma once

/// @file
/// The file of --trace, with the recordings of all processes of the program.

#include <cstdint>
#include <string>

#include <tensorpool/live_trace.hpp>

#include "common/launch/family.hpp"
#include "formats/trace/trace_writer.hpp"

namespace tensorpool::command::run {

class TraceOutput final : public launch::Recorder {
public:
    /// Throws CommandError if the file cannot be created.
    explicit TraceOutput(const std::string& path) : path_(path), writer_(path) {}

    std::size_t look(std::uint64_t process, LiveTrace& trace) override;
    void finish(std::uint64_t process, LiveTrace& trace) override;
    bool is_full() const noexcept override { return !writer_.problem().empty(); }
    void flush() override { writer_.flush(); }

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
