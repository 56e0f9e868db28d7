#include <nlohmann/json.hpp>

#include "common/options.hpp"
#include "export/formats.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command {
namespace {

using export_::At;

enum class Format { torch, heap, chrome, rmm };

// The default number of calls in a snapshot's history; viewers become slow beyond that.
constexpr std::uint64_t usual_entries = 200'000;

struct ExportOptions {
    std::string path;
    Format format = Format::torch;
    std::string output;
    At at = At::peak;
    std::uint64_t entries = usual_entries;
};

/// Writes the chosen format. Returns how many calls were left out of a history.
std::uint64_t write(const export_::History& history, const ExportOptions& options,
                    WrittenFile& file) {
    const export_::Moment moment = export_::moment_of(history, options.at);
    if (options.format == Format::torch) {
        return export_::write_snapshot(history, moment, options.entries, file);
    }
    if (options.format == Format::heap) export_::write_heap_profile(history, moment, file);
    if (options.format == Format::chrome) export_::write_chrome_trace(history, file);
    if (options.format == Format::rmm) export_::write_rmm_log(history, file);
    return 0;
}

void check_output(const Settings& settings, const ExportOptions& options) {
    if (!options.output.empty()) return;
    if (settings.json) {
        throw CommandError(wrong_usage,
                           "--json would be mixed with the export; name a file with -o");
    }
    if (options.format == Format::torch && isatty(STDOUT_FILENO) != 0) {
        throw CommandError(wrong_usage,
                           "a snapshot is binary and cannot go to a terminal; name a file with -o");
    }
}

void report(const Settings& settings, const ExportOptions& options, const WrittenFile& file,
            std::uint64_t left_out, std::uint64_t cut_bytes) {
    if (cut_bytes > 0) {
        print_error(
            fmt::format("tensorpool: {} is truncated: its last {} bytes are an incomplete chunk; "
                        "everything before them was exported",
                        printable(options.path), cut_bytes));
    }
    if (settings.json) {
        const nlohmann::ordered_json result{{"path", options.output},
                                            {"bytes", file.bytes()},
                                            {"calls_left_out", left_out},
                                            {"cut_bytes", cut_bytes}};
        print_line(json_line(result));
    } else if (left_out > 0) {
        fmt::print(
            stderr,
            "tensorpool: the history holds the last {} calls; {} earlier calls were left out "
            "(--entries)\n",
            options.entries, left_out);
    }
}

int export_file(const Settings& settings, const ExportOptions& options) {
    check_output(settings, options);
    const trace::Recording recording = trace::read_recording(options.path);
    if (recording.calls.empty()) {
        throw CommandError(finding,
                           fmt::format("{}: contains no calls, so there is nothing to export",
                                       printable(options.path)));
    }
    const export_::History history(recording);
    WrittenFile file(options.output, options.path);
    const std::uint64_t left_out = write(history, options, file);
    file.finish();
    report(settings, options, file, left_out, recording.cut_bytes);
    return success;
}

void add_options(CLI::App& command, Settings& settings, ExportOptions& options) {
    static const std::map<std::string, Format> formats = {{"torch", Format::torch},
                                                          {"heap", Format::heap},
                                                          {"chrome", Format::chrome},
                                                          {"rmm", Format::rmm}};
    static const std::map<std::string, At> moments = {{"peak", At::peak}, {"end", At::end}};
    add_file(command, options.path, "A trace, or a log of RMM");
    add_option(command, "-f,--format FORMAT", options.format, "torch, heap, chrome or rmm")
        ->required()
        ->transform(CLI::CheckedTransformer(formats));
    add_option(command, "-o,--output OUT", options.output, "Write to this file (standard output)");
    add_option(command, "--at MOMENT", options.at,
               "The moment of torch and heap: peak or end (peak)")
        ->transform(CLI::CheckedTransformer(moments));
    add_option(command, "--entries N", options.entries,
               fmt::format("Maximum calls in torch's history ({})", usual_entries));
    command.add_flag("--json", settings.json, "Print what was written as JSON");
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool export train.trace -f torch -o train.pickle   PyTorch's memory_viz\n"
    "  tensorpool export train.trace -f heap -o train.heap\n"
    "  jeprof --text train.heap\n"
    "  tensorpool export train.trace -f chrome -o train.json    ui.perfetto.dev\n"
    "  tensorpool export train.trace -f rmm -o train.csv        RMM's replay";

constexpr const char* details =
    "torch is a memory snapshot. Each process is a device. Its segments are the addresses that "
    "blocks of a pool, an arena or a scratch have had so far, because the trace does not record "
    "what pools reserve. Each allocator of device memory follows as a device of its own, with its "
    "slabs as segments and with its streams. The history ends at the chosen moment.\n\n"
    "heap is a profile of gperftools, by call stack if stacks were sampled, otherwise by pool and "
    "scope. It contains the names of functions and lines, so that readers need no program. chrome "
    "holds the live bytes of each pool over time (thinned), scopes, and failed requests. rmm is "
    "the log of RMM's logging_resource_adaptor. That format has no processes: addresses of the "
    "second process are moved by 2^48, of the third by twice that, and so on, followed by those of "
    "each allocator of device memory.\n";

}  // namespace

void add_export(CLI::App& app, Settings& settings) {
    add_subcommand(app, settings,
                   {"export", "Convert a recording to the format of another tool", footer, details},
                   export_file, add_options);
}

}  // namespace tensorpool::command

namespace tensorpool::command::export_ {
namespace {

// gperftools' text format ("heap profile:"), as pprof, jeprof and google-pprof read it, with names
// instead of addresses. Samples are written without scaling: readers scale them by heap_v2 and the
// interval.

using profile::HeapSum;
using profile::NamedHeap;

Moment find_peak(const History& history) {
    std::uint64_t now = 0;
    std::uint64_t max = 0;
    Moment peak;
    history.walk(
        [&](std::uint32_t i) {
            const Lifetime& lifetime = history.lifetimes()[i];
            now += lifetime.bytes;
            if (now <= max) return;
            max = now;
            peak.calls = lifetime.begin == Lifetime::none ? 0 : lifetime.begin + 1;
        },
        [&](std::uint32_t i) { now -= history.lifetimes()[i].bytes; });
    return peak;
}

void add(HeapSum& sum, const Lifetime& lifetime, Moment moment) {
    if (moment.is_alive(lifetime)) {
        ++sum.blocks;
        sum.bytes += lifetime.bytes;
    }
    if (lifetime.begin == Lifetime::none || lifetime.continues) return;
    ++sum.all_blocks;
    sum.all_bytes += lifetime.bytes;
}

template <class Key, class Rank>
std::map<Key, HeapSum> add_up(const History& history, Moment moment, Rank key_of) {
    std::map<Key, HeapSum> sums;
    for (std::size_t i = 0; i < history.lifetimes().size(); ++i) {
        const Lifetime& lifetime = history.lifetimes()[i];
        if (moment.has_begun(lifetime)) add(sums[key_of(i)], lifetime, moment);
    }
    return sums;
}

/// Readers scale the samples by this interval.
std::string kind_of(const Recording& recording) {
    std::uint64_t interval = 1;
    for (const trace::RecordedProcess& process : recording.processes) {
        interval = std::max(interval, process.stack_interval);
    }
    return fmt::format("heap_v2/{}", interval);
}

NamedHeap by_stack(const History& history, Moment moment) {
    const Recording& recording = history.recording();
    auto sums = add_up<std::uint32_t>(history, moment,
                                      [&](std::size_t i) { return history.facts(i).stack; });
    sums.erase(0);  // calls without a sampled stack
    symbols::FrameNames names(recording);
    NamedHeap heap;
    for (const auto& [stack, sum] : sums) {
        std::vector<std::string> texts;
        for (const trace::RecordedFrame frame : symbols::frames_of_caller(recording, stack)) {
            texts.push_back(to_short_text(names.name(frame)));
        }
        heap.add(sum, texts);
    }
    return heap;
}

NamedHeap by_name(const History& history, Moment moment) {
    const Recording& recording = history.recording();
    using SourceAndScope = std::pair<std::uint32_t, std::uint32_t>;
    const auto sums = add_up<SourceAndScope>(history, moment, [&](std::size_t i) {
        return SourceAndScope{history.lifetimes()[i].source, history.facts(i).scope};
    });
    NamedHeap heap;
    for (const auto& [key, sum] : sums) {
        const auto [source, scope] = key;
        const std::string& outer = scope == BlockFacts::none ? std::string("[outside of scopes]")
                                                             : recording.sources[scope].name;
        heap.add(sum, {recording.sources[source].name, outer});
    }
    return heap;
}

std::string time_of_day(std::uint64_t unix_ns) {
    const std::uint64_t micros = unix_ns / 1000;
    const std::uint64_t seconds = micros / 1'000'000;
    return fmt::format("{:02}:{:02}:{:02}.{:06}", seconds / 3600 % 24, seconds / 60 % 60,
                       seconds % 60, micros % 1'000'000);
}

/// The call whose time and thread a line shows. Blocks from before the recording use its first
/// call.
std::uint32_t known(std::uint32_t call) noexcept {
    return call == Lifetime::none ? 0 : call;
}

/// Makes addresses unique. The log has neither processes nor devices, and blocks of two of them may
/// have the same address. Each process after the first, and each device's allocator, gets an
/// address space of its own, above the addresses that operating systems use.
class Addresses {
public:
    explicit Addresses(const Recording& recording) {
        std::uint64_t spaces = recording.processes.size();
        for (const trace::RecordedSource& source : recording.sources) {
            const bool of_device = source.kind == TraceSource::device;
            space_of_source_.push_back(of_device ? spaces++ : source.process);
        }
    }
    std::uint64_t of(const Lifetime& lifetime) const noexcept {
        constexpr unsigned address_bits = 48;
        const bool of_source = space_of_source_[lifetime.source] != 0;
        const std::uint64_t space =
            of_source ? space_of_source_[lifetime.source] : lifetime.process;
        return lifetime.address + (space << address_bits);
    }

private:
    std::vector<std::uint64_t> space_of_source_;
};

std::string line_of(const History& history, std::uint32_t call, const char* action,
                    std::uint64_t address, std::uint64_t bytes, std::uint16_t stream = 0) {
    const Recording& recording = history.recording();
    const trace::Call& from = recording.calls[known(call)];
    return fmt::format("{},{},{},{:#x},{},{:#x}\n", recording.threads[from.thread].number,
                       time_of_day(recording.begun_unix_ns + from.time_ns), action, address,
                       std::min(bytes, UINT64_MAX - address), recording.streams[stream]);
}

// Writes the "Trace Event Format", which the viewers of Chrome and Perfetto read.

// A viewer shows no more counter events than this at once, and loads them slowly.
constexpr std::uint64_t max_counts = 200'000;
constexpr std::uint64_t min_counts_of_one = 100;

/// A time in microseconds, the unit of the format.
std::string json_time(std::uint64_t ns) {
    return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

/// The live bytes of one source: the maximum of each time interval, and the value at its end.
struct Counter {
    std::uint64_t now = 0;
    std::uint64_t max = 0;
    std::uint64_t max_time = 0;
    std::uint64_t stretch = UINT64_MAX;
    bool is_written = true;
};

class ChromeWriter {
public:
    ChromeWriter(const History& history, WrittenFile& file)
        : history_(history),
          recording_(history.recording()),
          file_(file),
          counters_(recording_.sources.size()),
          open_(recording_.threads.size()) {
        const std::uint64_t stretches =
            std::max(max_counts / std::max<std::uint64_t>(counters_.size(), 1), min_counts_of_one);
        stretch_ns_ = (history.last_ns() - history.first_ns()) / stretches + 1;
    }

    void write() {
        file_.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
        write_names();
        write_calls();
        write_counters();
        file_.write("\n]}\n");
    }

private:
    void add(const std::string& event) {
        file_.write(is_first_ ? "\n{" : ",\n{");
        file_.write(event);
        file_.write("}");
        is_first_ = false;
    }
    std::uint64_t process_of(const trace::RecordedThread& thread) const {
        return recording_.processes[thread.process].number;
    }

    void write_names() {
        for (const trace::RecordedProcess& process : recording_.processes) {
            add(
                fmt::format("\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"tid\":0,"
                            "\"args\":{{\"name\":{}}}",
                            process.number, json_line(process.name)));
        }
        for (const trace::RecordedThread& thread : recording_.threads) {
            add(
                fmt::format("\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},"
                            "\"args\":{{\"name\":\"thread {}\"}}",
                            process_of(thread), thread.number, thread.number));
        }
    }

    void write_calls() {
        for (const trace::Call& call : recording_.calls) {
            if (call.action == TraceAction::scope_begin) begin_scope(call);
            if (call.action == TraceAction::scope_end) end_scope(call);
            if (call.action == TraceAction::refuse) {
                add(fmt::format("{},\"s\":\"t\",\"name\":\"refused\",\"args\":{{\"bytes\":{}}}",
                                head_of(call, "i"), call.bytes));
            }
        }
    }
    std::string head_of(const trace::Call& call, const char* phase) const {
        const trace::RecordedThread& thread = recording_.threads[call.thread];
        return fmt::format("\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}", phase,
                           process_of(thread), thread.number, json_time(call.time_ns));
    }

    // Slices of a thread must nest. A scope that ends before a scope inside it is closed when the
    // inner scope ends.
    struct OpenScope {
        std::uint32_t source;
        bool has_ended;
    };
    void begin_scope(const trace::Call& call) {
        open_[call.thread].push_back({call.source, false});
        add(fmt::format("{},\"name\":{}", head_of(call, "B"),
                        json_line(recording_.sources[call.source].name)));
    }
    void end_scope(const trace::Call& call) {
        auto& open = open_[call.thread];
        // The search depth is limited, so that a malformed file cannot make the export quadratic.
        const std::size_t depth = std::min<std::size_t>(open.size(), 256);
        for (std::size_t i = open.size(); i > open.size() - depth; --i) {
            OpenScope& scope = open[i - 1];
            if (scope.source != call.source || scope.has_ended) continue;
            scope.has_ended = true;
            break;
        }
        for (; !open.empty() && open.back().has_ended; open.pop_back()) {
            add(head_of(call, "E"));
        }
    }

    void write_counters() {
        const auto change = [this](const Lifetime& lifetime, std::uint64_t time, bool begins) {
            Counter& counter = reach(lifetime.source, time);
            counter.now += begins ? lifetime.bytes : 0 - lifetime.bytes;
            see(counter, time);
        };
        const auto& all = history_.lifetimes();
        history_.walk(
            [&](std::uint32_t i) { change(all[i], history_.time_of(all[i].begin), true); },
            [&](std::uint32_t i) { change(all[i], history_.time_of(all[i].end), false); });
        for (std::uint32_t source = 0; source < counters_.size(); ++source) {
            write_max(source);
            if (counters_[source].stretch != UINT64_MAX) {
                write_count(source, counters_[source].now, history_.last_ns());
            }
        }
    }
    Counter& reach(std::uint32_t source, std::uint64_t time) {
        Counter& counter = counters_[source];
        const std::uint64_t stretch = (time - history_.first_ns()) / stretch_ns_;
        if (stretch == counter.stretch) return counter;
        const std::uint64_t before = counter.now;
        const bool is_first = counter.stretch == UINT64_MAX;
        write_max(source);
        if (!is_first) {
            const std::uint64_t end = history_.first_ns() + (counter.stretch + 1) * stretch_ns_;
            write_count(source, before, end);
        }
        counter.stretch = stretch;
        counter.max = 0;
        return counter;
    }
    void see(Counter& counter, std::uint64_t time) {
        if (counter.now < counter.max) return;
        counter.max = counter.now;
        counter.max_time = time;
        counter.is_written = false;
    }
    void write_max(std::uint32_t source) {
        Counter& counter = counters_[source];
        if (!counter.is_written) write_count(source, counter.max, counter.max_time);
        counter.is_written = true;
    }
    void write_count(std::uint32_t source, std::uint64_t bytes, std::uint64_t time) {
        const trace::RecordedSource& from = recording_.sources[source];
        add(
            fmt::format("\"ph\":\"C\",\"name\":{},\"pid\":{},\"tid\":0,\"ts\":{},"
                        "\"args\":{{\"bytes\":{}}}",
                        json_line(from.name_and_kind()), recording_.processes[from.process].number,
                        json_time(time), bytes));
    }

    const History& history_;
    const Recording& recording_;
    WrittenFile& file_;
    std::vector<Counter> counters_;             // indexed by source
    std::vector<std::vector<OpenScope>> open_;  // indexed by thread, the innermost last
    std::uint64_t stretch_ns_ = 1;
    bool is_first_ = true;
};

}  // namespace

Moment moment_of(const History& history, At at) {
    if (at == At::peak) return find_peak(history);
    return {static_cast<std::uint32_t>(history.recording().calls.size())};
}

void write_heap_profile(const History& history, Moment moment, WrittenFile& file) {
    const bool has_stacks = history.recording().stacks.size() > 1;
    file.write(has_stacks ? by_stack(history, moment).text(kind_of(history.recording()))
                          : by_name(history, moment).text("heapprofile"));
}

void write_rmm_log(const History& history, WrittenFile& file) {
    const Recording& recording = history.recording();
    file.write(fmt::format("{}\n", trace::rmm_log_beginning));
    const Addresses addresses(recording);
    std::uint32_t written = 0;  // calls whose failures have been written
    const auto refusals_before = [&](std::uint32_t call) {
        for (; written < known(call); ++written) {
            const trace::Call& refused = recording.calls[written];
            if (refused.action != TraceAction::refuse) continue;
            file.write(line_of(history, written, "allocate failure", 0, refused.bytes));
        }
    };
    const auto write = [&](const Lifetime& lifetime, std::uint32_t call, const char* action) {
        refusals_before(call);
        file.write(line_of(history, call, action, addresses.of(lifetime), lifetime.bytes,
                           lifetime.stream));
    };
    const auto& all = history.lifetimes();
    history.walk([&](std::uint32_t i) { write(all[i], all[i].begin, "allocate"); },
                 [&](std::uint32_t i) { write(all[i], all[i].end, "free"); });
    refusals_before(static_cast<std::uint32_t>(recording.calls.size()));
}

void write_chrome_trace(const History& history, WrittenFile& file) {
    ChromeWriter(history, file).write();
}

}  // namespace tensorpool::command::export_
