#include "record/session.hpp"
#include "common/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace tensorpool::command::record {
namespace {

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
