#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <tensorpool/live_trace.hpp>
#include <tensorpool/statistics_reader.hpp>

#include "common/end_signals.hpp"
#include "record/outcome.hpp"
#include "record/pace.hpp"
#include "formats/trace/trace_writer.hpp"

namespace tensorpool::command::record {

/// One recording of one process: requests it, reads the recorded calls, and writes them to a file.
class Session {
public:
    using Clock = std::chrono::steady_clock;
    using Time = std::optional<std::chrono::nanoseconds>;

    /// Requests the recording, then creates the file. Throws AttachError and CommandError.
    Session(StatisticsReader& process, std::uint64_t stack_interval, const std::string& path);

    /// Records until a signal arrives, the process ends, or the disk is full. With a time, also
    /// ends that long after the process begins to record. The process has the same time to begin.
    Outcome run(EndSignals& signals, Time time);

private:
    std::size_t look();
    bool has_died();
    void wait_for_begin(EndSignals& signals, Time time);
    void report_waiting() const;
    void record(EndSignals& signals, Time time);
    void stop();
    void take_the_rest();
    Outcome sum_up();

    StatisticsReader& process_;
    LiveTrace trace_;
    std::optional<trace::TraceWriter> writer_;
    Pace pace_;
    Clock::time_point requested_ = Clock::now();
    Clock::time_point begun_ = requested_;
    Clock::time_point seen_alive_ = requested_;
    Outcome outcome_;
};

}  // namespace tensorpool::command::record
