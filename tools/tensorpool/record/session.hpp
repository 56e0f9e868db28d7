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
#include "trace/trace_writer.hpp"

namespace tensorpool::command::record {

/// One recording of one process: asks it, takes its calls out, and writes them.
class Session {
public:
    using Clock = std::chrono::steady_clock;
    using Time = std::optional<std::chrono::nanoseconds>;

    /// Asks the process, then makes the file. Throws AttachError and CommandError.
    Session(StatisticsReader& process, std::uint64_t stack_interval, const std::string& path);

    /// Until a signal comes, the process ends, or the disk is full; with a time no longer than that
    /// from when the process begins to record, for which it has as long.
    Outcome run(EndSignals& signals, Time time);

private:
    std::size_t look();
    bool has_died();
    void wait_for_begin(EndSignals& signals, Time time);
    void tell_that_it_waits() const;
    void record(EndSignals& signals, Time time);
    void stop();
    void take_the_rest();
    Outcome sum_up();

    StatisticsReader& process_;
    LiveTrace trace_;
    std::optional<trace::TraceWriter> writer_;
    Pace pace_;
    Clock::time_point asked_ = Clock::now();
    Clock::time_point begun_ = asked_;
    Clock::time_point seen_alive_ = asked_;
    Outcome outcome_;
};

}  // namespace tensorpool::command::record
