#pragma once

/// @file
/// The report that is printed when the program has ended, and the file of --trace.

#include "common/launch/launch.hpp"
#include "formats/trace/trace_file.hpp"

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

using launch::Outcome;
using launch::Part;
using launch::PartNotes;
using launch::PlannedPart;
using launch::ProcessResult;
using launch::Results;

struct Arguments : launch::Arguments {
    std::string trace;   ///< a path; "": no recording
    std::string report;  ///< a path, or none; "": standard error
};

struct Report {
    const Arguments& arguments;
    const std::vector<PlannedPart>& parts;
    const Outcome& outcome;
    const Results& results;
    const TraceOutput* trace;  ///< nullptr: nothing was recorded
};

/// Formats the report for people: the parts that were enabled and those that were not, then the
/// pools.
std::string to_text(const Report& report);
/// Formats the report as one JSON object per line: the run, then each process.
std::string to_json(const Report& report);

}  // namespace tensorpool::command::run
