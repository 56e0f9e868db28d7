#include "record/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace tensorpool::command::record {
namespace {

using namespace std::chrono_literals;

constexpr auto between_looks_for_begin = 2ms;
constexpr auto between_looks_for_end = 20ms;
/// Where the recorder itself is killed, no more than this is lost.
constexpr auto between_flushes = 1s;
/// Long enough to tell that a process does nothing with tensorpool for now.
constexpr auto patience = 2s;
/// A process that makes no call any more does not see that it is to stop.
constexpr auto time_to_stop = 200ms;
/// What is under way when a process stops are some calls of each thread.
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
    std::size_t most = 0;
    const std::size_t count = trace_.look([&](const TracePart& part) {
        writer_->add(outcome_.process, part);
        if (part.kind != TraceChunkKind::entries) return;
        if (part.ring != ring) of_ring = 0;
        ring = part.ring;
        of_ring += part.payload.size() / sizeof(TraceEntry);
        most = std::max(most, of_ring);
    });
    pace_.note(most);
    return count;
}

// That costs a look at a file of the system.
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
    const auto end = end_of(time, asked_);
    bool told = false;
    for (;;) {
        const bool died = has_died();  // what it did before is seen all the same
        look();
        if (trace_.has_begun() || died || Clock::now() >= end) break;
        if (signals.come_within(between_looks_for_begin)) break;
        if (told || Clock::now() - asked_ < patience) continue;
        told = true;
        tell_that_it_waits();
    }
    begun_ = Clock::now();
    outcome_.begun_after = seconds_between(asked_, begun_);
    if (trace_.has_begun()) {
        fmt::print(stderr, "tensorpool: process {} has begun to record\n", outcome_.process);
    }
}

void Session::tell_that_it_waits() const {
    fmt::print(stderr,
               "tensorpool: process {} does not record yet: it begins when one of its threads "
               "next takes a slow path of a pool, such as for a large block; waiting for that\n",
               outcome_.process);
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
