// Writes the "Trace Event Format", which the viewers of Chrome and Perfetto read.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/html.hpp"
#include "export/formats.hpp"

namespace tensorpool::command::export_ {
namespace {

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

void write_chrome_trace(const History& history, WrittenFile& file) {
    ChromeWriter(history, file).write();
}

}  // namespace tensorpool::command::export_
