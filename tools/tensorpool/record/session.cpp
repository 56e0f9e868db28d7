#include "record/session.hpp"

#include <fmt/format.h>

#include <thread>

#include <nlohmann/json.hpp>

#include "common/output.hpp"

namespace tensorpool::command::record {
namespace {

std::string what_is_missing(const Outcome& outcome) {
    std::string text;
    if (outcome.dropped != 0) {
        text += fmt::format(
            "\n{} calls are missing, because the program made them faster than they could be "
            "written; more idle processors reduce the loss",
            format_count(static_cast<double>(outcome.dropped)));
    }
    if (outcome.threads_left_out != 0) {
        text += fmt::format(
            "\n{} times a thread found none of the 512 rings free; its calls are missing until "
            "another thread ended",
            outcome.threads_left_out);
    }
    if (outcome.names_left_out != 0) {
        text += fmt::format("\n{} pools, arenas and scopes beyond the first 1,024 have no name",
                            outcome.names_left_out);
    }
    return text;
}

using namespace std::chrono_literals;

constexpr auto between_looks_for_begin = 2ms;
constexpr auto between_looks_for_end = 20ms;
/// If the recorder is killed, at most this much is lost.
constexpr auto between_flushes = 1s;
/// After this time without a beginning, the recorder reports that it waits.
constexpr auto patience = 2s;
/// A process that makes no more calls does not notice the request to stop.
constexpr auto time_to_stop = 200ms;
/// When a process stops, at most a few calls of each thread are unfinished.
constexpr int max_last_looks = 100;

double seconds_between(Session::Clock::time_point begin, Session::Clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
}

Session::Clock::time_point end_of(Session::Time time, Session::Clock::time_point begin) {
    return time ? begin + *time : Session::Clock::time_point::max();
}

}  // namespace

ExitCode exit_code_of(const Outcome& outcome) {
    if (!outcome.problem.empty()) return finding;
    if (outcome.has_begun) return success;
    return outcome.process_ended ? target_gone : finding;
}

std::string to_text(const Outcome& outcome, Sizes sizes) {
    return fmt::format(
        "{} entries in {:.1f} s, beginning {:.0f} ms after the request; {} in {}{}{}",
        format_count(static_cast<double>(outcome.entries)), outcome.seconds,
        outcome.begun_after * 1e3, format_size(outcome.bytes, sizes), printable(outcome.path),
        outcome.process_ended ? fmt::format("; process {} has ended", outcome.process) : "",
        what_is_missing(outcome));
}

std::string to_json(const Outcome& outcome) {
    return nlohmann::ordered_json{
        {"process", outcome.process},
        {"file", printable(outcome.path)},
        {"begun", outcome.has_begun},
        {"begun_after_seconds", outcome.begun_after},
        {"seconds", outcome.seconds},
        {"process_ended", outcome.process_ended},
        {"entries", outcome.entries},
        {"dropped", outcome.dropped},
        {"bytes", outcome.bytes},
        {"threads_left_out", outcome.threads_left_out},
        {"names_left_out", outcome.names_left_out},
        {"problem", outcome.problem},
    }
        .dump();
}

std::string complaint_of(const Outcome& outcome) {
    if (!outcome.problem.empty()) {
        return fmt::format(
            "recording ended early: {} cannot be written further: {}; its contents are readable; "
            "make room, or write to another disk with -o",
            printable(outcome.path), printable(outcome.problem));
    }
    if (outcome.has_begun) return "";
    if (outcome.process_ended) {
        return fmt::format(
            "process {} ended before it noticed the request to record; to record a program from "
            "its first call on, start it with `tensorpool run --trace FILE`",
            outcome.process);
    }
    return fmt::format(
        "process {} has not begun to record: none of its threads took a slow path of a pool, for "
        "example to allocate a large block; record for longer, or while the process works",
        outcome.process);
}

Session::Session(StatisticsReader& process, std::uint64_t stack_interval, const std::string& path)
    : process_(process), trace_(LiveTrace::ask(process.process(), stack_interval)) {
    outcome_.process = process.process();
    outcome_.path = path;
    try {
        writer_.emplace(path);
    } catch (...) {
        trace_.stop();
        throw;
    }
}

Outcome Session::run(EndSignals& signals, Time time) {
    wait_for_begin(signals, time);
    if (trace_.has_begun()) record(signals, time);
    stop();
    take_the_rest();
    return sum_up();
}

std::size_t Session::look() {
    std::uint32_t ring = 0;
    std::size_t of_ring = 0;
    std::size_t max = 0;
    const std::size_t count = trace_.look([&](const TracePart& part) {
        writer_->add(outcome_.process, part);
        if (part.kind != TraceChunkKind::entries) return;
        if (part.ring != ring) of_ring = 0;
        ring = part.ring;
        of_ring += part.payload.size() / sizeof(TraceEntry);
        max = std::max(max, of_ring);
    });
    pace_.note(max);
    return count;
}

// Checked at intervals, because it reads a file in /proc.
bool Session::has_died() {
    const auto now = Clock::now();
    if (outcome_.process_ended || now - seen_alive_ < between_looks_for_end) {
        return outcome_.process_ended;
    }
    seen_alive_ = now;
    outcome_.process_ended = !process_.is_running();
    return outcome_.process_ended;
}

void Session::wait_for_begin(EndSignals& signals, Time time) {
    const auto end = end_of(time, requested_);
    bool reported = false;
    for (;;) {
        const bool died =
            has_died();  // checked first, so that entries from before its end are still read
        look();
        if (trace_.has_begun() || died || Clock::now() >= end) break;
        if (signals.come_within(between_looks_for_begin)) break;
        if (reported || Clock::now() - requested_ < patience) continue;
        reported = true;
        report_waiting();
    }
    begun_ = Clock::now();
    outcome_.begun_after = seconds_between(requested_, begun_);
    if (trace_.has_begun()) {
        print_error(fmt::format("tensorpool: process {} has begun to record", outcome_.process));
    }
}

void Session::report_waiting() const {
    print_error(
        fmt::format("tensorpool: process {} does not record yet; it begins when one of its threads "
                    "next takes a slow path of a pool, for example for a large block; waiting",
                    outcome_.process));
}

void Session::record(EndSignals& signals, Time time) {
    const auto end = end_of(time, begun_);
    auto flush = begun_ + between_flushes;
    for (auto now = begun_; now < end; now = Clock::now()) {
        if (signals.come_within(std::min<Clock::duration>(pace_.pause(), end - now))) return;
        look();
        if (now >= flush) {
            writer_->flush();
            flush = now + between_flushes;
        }
        if (!writer_->problem().empty() || trace_.has_ended() || has_died()) return;
    }
}

void Session::stop() {
    const auto now = Clock::now();
    if (trace_.has_begun()) outcome_.seconds = seconds_between(begun_, now);
    trace_.stop();
    while (trace_.has_begun() && !has_died() && !trace_.has_ended() &&
           Clock::now() - now < time_to_stop) {
        std::this_thread::sleep_for(1ms);
        look();
    }
}

void Session::take_the_rest() {
    for (int looks = 0; looks < max_last_looks && look() != 0; ++looks) {
    }
    if (trace_.has_begun()) writer_->end(outcome_.process);
    writer_->flush();
}

Outcome Session::sum_up() {
    outcome_.has_begun = trace_.has_begun();
    outcome_.entries = writer_->entries();
    outcome_.dropped = writer_->dropped();
    outcome_.bytes = writer_->written_bytes();
    outcome_.threads_left_out = trace_.threads_left_out();
    outcome_.names_left_out = trace_.names_left_out();
    outcome_.problem = writer_->problem();
    return outcome_;
}

}  // namespace tensorpool::command::record
