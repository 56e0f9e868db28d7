#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include <tensorpool/live_trace.hpp>
#include <tensorpool/statistics_reader.hpp>

#include "run/observer.hpp"
#include "run/results.hpp"
#include "run/trace_output.hpp"

namespace tensorpool::command::run {

/// The processes of the program that used a pool. Of each that runs, four descriptors are held and
/// two mappings; of one that has ended only what the report may show.
class Family {
public:
    /// `trace`: where recordings go, which outlives this; nullptr: nowhere. Throws CommandError.
    explicit Family(TraceOutput* trace);
    Family(const Family&) = delete;
    Family& operator=(const Family&) = delete;

    /// Can be read when one of them has ended.
    int descriptor() const noexcept { return events_.number(); }
    /// What a process handed over or told.
    void take(Message message);
    /// Reads what those came to that have ended.
    void take_ended();
    /// Takes out what was recorded; returns the most entries that one process had.
    std::size_t take_entries();
    /// The program has ended: reads what there is of those that still run.
    void finish();

    const Results& results() const noexcept { return results_; }

private:
    struct Member {
        std::uint64_t number;  // of ours
        pid_t process;
        Descriptor end;  // a pidfd; may be none
        StatisticsReader reader;
        std::optional<LiveTrace> trace;
    };
    using Members = std::list<Member>;

    void add(Message message);
    void make_room(pid_t process);
    std::optional<LiveTrace> take_recording(Descriptor control, Descriptor rings);
    Members::iterator let_go(Members::iterator member, bool has_ended);

    TraceOutput* trace_;
    Descriptor events_;
    std::size_t max_members_;
    std::uint64_t last_number_ = 0;
    Members members_;
    Results results_;
};

}  // namespace tensorpool::command::run
