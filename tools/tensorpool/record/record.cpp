#include "common/options.hpp"
#include "common/output.hpp"
#include "common/target.hpp"
#include "formats/trace/trace_file.hpp"
#include "record/outcome.hpp"

namespace tensorpool::command {
namespace {

using record::Outcome;
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

using Clock = std::chrono::steady_clock;
using Time = std::optional<std::chrono::nanoseconds>;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
}

Clock::time_point end_of(Time time, Clock::time_point begin) {
    return time ? begin + *time : Clock::time_point::max();
}

/// One recording of one process: requests it, reads the recorded calls, and writes them to a file.
class Session {
public:
    /// Requests the recording, then creates the file. Throws AttachError and CommandError.
    Session(StatisticsReader& process, std::uint64_t stack_interval, const std::string& path)
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

    /// Records until a signal arrives, the process ends, or the disk is full. With a time, also
    /// ends that long after the process begins to record. The process has the same time to begin.
    Outcome run(EndSignals& signals, Time time) {
        wait_for_begin(signals, time);
        if (trace_.has_begun()) record(signals, time);
        stop();
        take_the_rest();
        return sum_up();
    }

private:
    std::size_t look() {
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
    bool has_died() {
        const auto now = Clock::now();
        if (outcome_.process_ended || now - seen_alive_ < between_looks_for_end) {
            return outcome_.process_ended;
        }
        seen_alive_ = now;
        outcome_.process_ended = !process_.is_running();
        return outcome_.process_ended;
    }
    void wait_for_begin(EndSignals& signals, Time time) {
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
            print_error(
                fmt::format("tensorpool: process {} has begun to record", outcome_.process));
        }
    }
    void report_waiting() const {
        print_error(fmt::format(
            "tensorpool: process {} does not record yet; it begins when one of its threads "
            "next takes a slow path of a pool, for example for a large block; waiting",
            outcome_.process));
    }
    void record(EndSignals& signals, Time time) {
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
    void stop() {
        const auto now = Clock::now();
        if (trace_.has_begun()) outcome_.seconds = seconds_between(begun_, now);
        trace_.stop();
        while (trace_.has_begun() && !has_died() && !trace_.has_ended() &&
               Clock::now() - now < time_to_stop) {
            std::this_thread::sleep_for(1ms);
            look();
        }
    }
    void take_the_rest() {
        for (int looks = 0; looks < max_last_looks && look() != 0; ++looks) {
        }
        if (trace_.has_begun()) writer_->end(outcome_.process);
        writer_->flush();
    }
    Outcome sum_up() {
        outcome_.has_begun = trace_.has_begun();
        outcome_.entries = writer_->entries();
        outcome_.dropped = writer_->dropped();
        outcome_.bytes = writer_->written_bytes();
        outcome_.threads_left_out = trace_.threads_left_out();
        outcome_.names_left_out = trace_.names_left_out();
        outcome_.problem = writer_->problem();
        return outcome_;
    }

    StatisticsReader& process_;
    LiveTrace trace_;
    std::optional<trace::TraceWriter> writer_;
    record::Pace pace_;
    Clock::time_point requested_ = Clock::now();
    Clock::time_point begun_ = requested_;
    Clock::time_point seen_alive_ = requested_;
    Outcome outcome_;
};

struct Arguments {
    std::string time;
    std::uint64_t stack_interval = 0;
    std::string path;
};

int record_process(const Settings& settings, const Arguments& arguments) {
    const auto time = parse_time(arguments.time);
    StatisticsReader process = attach_chosen(settings);
    const std::string path = arguments.path.empty()
                                 ? fmt::format("tensorpool-{}.tpt", process.process())
                                 : arguments.path;
    EndSignals signals;
    Session session(process, arguments.stack_interval, path);
    print_error(fmt::format("tensorpool: requested process {} to record; writing {} until Ctrl-C",
                            process.process(), printable(path)));
    const Outcome outcome = session.run(signals, time);
    if (settings.json) {
        print_line(to_json(outcome));
    } else if (outcome.has_begun) {
        print_line(to_text(outcome, sizes_of(settings)));
    }
    const std::string complaint = complaint_of(outcome);
    if (!complaint.empty()) throw CommandError(exit_code_of(outcome), complaint);
    return success;
}

void declare_options(CLI::App& command, Settings& settings, Arguments& arguments) {
    add_process_options(command, settings);
    add_option(command, "--for TIME", arguments.time,
               "Duration, such as 10s or 5min (until Ctrl-C)", problem_of_time);
    add_option(command, "--stacks SIZE", arguments.stack_interval,
               "Record a call stack about every SIZE bytes allocated, such as 512KiB")
        ->transform(CLI::AsSizeValue(true));
    add_option(command, "-o,--output FILE", arguments.path,
               "The file to write (tensorpool-PID.tpt)");
    add_output_options(command, settings);
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool record --name train --for 10s\n"
    "  tensorpool record --pid 4711 --stacks 512KiB -o train.tpt\n"
    "\n"
    "Ends with the process, or with Ctrl-C. `tensorpool run --trace FILE` records a\n"
    "program from its first call on.";

constexpr const char* details =
    "The process is neither stopped nor changed. It notices the request to record when one of its "
    "threads next takes a slow path of a pool, an arena or a scratch, for example for a large "
    "block or after some hundred small ones. From then on, the calls of all its threads are "
    "recorded. While recording, a call costs about 20 ns more. Each thread writes to a ring of "
    "16,384 entries, which is emptied up to about a thousand times a second. If a ring is full, "
    "its thread continues, and the lost calls are counted. The contents of the rings survive if "
    "the process is killed. Only one recorder at a time can record a process. Calls on a scratch "
    "over a caller's own buffer that existed before the recording are not recorded.\n"
    "\n"
    "The file is readable by its user only, because it contains addresses. If the disk is full, "
    "recording ends with status 1, and the contents of the file remain readable.\n";

}  // namespace

void add_record(CLI::App& app, Settings& settings) {
    add_subcommand(app, settings,
                   {"record", "Record the calls of a running program into a file", footer, details},
                   record_process, declare_options);
}

}  // namespace tensorpool::command
