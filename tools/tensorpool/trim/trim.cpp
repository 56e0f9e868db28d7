#include <nlohmann/json.hpp>

#include <tensorpool/trim_request.hpp>

#include "common/options.hpp"
#include "common/output.hpp"
#include "common/target.hpp"
#include "trim/outcome.hpp"

namespace tensorpool::command {

namespace trim {

std::string to_text(const Outcome& outcome, Sizes sizes) {
    const auto size = [&](std::uint64_t bytes) { return format_size(bytes, sizes); };
    std::string text =
        fmt::format("process {} released {} after {:.0f} ms: capacity {}, was {}", outcome.process,
                    size(outcome.trimmed_bytes.value_or(0)), outcome.seconds * 1e3,
                    size(outcome.after.capacity_bytes), size(outcome.before.capacity_bytes));
    if (outcome.after.resident_bytes != 0) {
        text += fmt::format("; resident {}, was {}", size(outcome.after.resident_bytes),
                            size(outcome.before.resident_bytes));
    }
    return text;
}

std::string to_json(const Outcome& outcome) {
    nlohmann::ordered_json json = {{"process", outcome.process},
                                   {"answered", outcome.trimmed_bytes.has_value()},
                                   {"seconds", outcome.seconds}};
    json["trimmed_bytes"] = outcome.trimmed_bytes.value_or(0);
    json["capacity_bytes_before"] = outcome.before.capacity_bytes;
    json["capacity_bytes"] = outcome.after.capacity_bytes;
    json["resident_bytes_before"] = outcome.before.resident_bytes;
    json["resident_bytes"] = outcome.after.resident_bytes;
    return json.dump();
}

std::string complaint_of(const Outcome& outcome, Sizes sizes) {
    if (outcome.trimmed_bytes) return "";
    return fmt::format(
        "process {} did not answer within {:.1f} s and holds {}: none of its threads took a slow "
        "path of a pool, for example for a large block; it will answer when one does; with "
        "TENSORPOOL_RETAIN_BACKGROUND=on in its environment, a thread answers at once",
        outcome.process, outcome.seconds, format_size(outcome.after.capacity_bytes, sizes));
}

}  // namespace trim

namespace {

using Clock = std::chrono::steady_clock;

trim::Memory memory_of(StatisticsReader& process) {
    const ProcessSnapshot snapshot = process.snapshot();
    trim::Memory memory{.resident_bytes = snapshot.resident_bytes};
    for (const PoolStatistics& pool : snapshot.pools) memory.capacity_bytes += pool.capacity_bytes;
    return memory;
}

trim::Outcome request_trim(StatisticsReader& process, Clock::duration patience) {
    trim::Outcome outcome{.process = process.process(), .before = memory_of(process)};
    const auto begin = Clock::now();
    const TrimRequest request = TrimRequest::ask(process.process());
    (void)wait_for_answer(process, patience, [&] { return request.trimmed_bytes().has_value(); });
    outcome.trimmed_bytes = request.trimmed_bytes();
    outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    outcome.after = memory_of(process);
    return outcome;
}

int trim_process(const Settings& settings, const std::string& patience) {
    StatisticsReader process = attach_chosen(settings);
    const trim::Outcome outcome =
        request_trim(process, std::chrono::duration_cast<Clock::duration>(*parse_time(patience)));
    if (settings.json) {
        print_line(to_json(outcome));
    } else if (outcome.trimmed_bytes) {
        print_line(to_text(outcome, sizes_of(settings)));
    }
    const std::string complaint = complaint_of(outcome, sizes_of(settings));
    if (!complaint.empty()) throw CommandError(finding, complaint);
    return success;
}

void declare_options(CLI::App& command, Settings& settings, std::string& patience) {
    add_process_options(command, settings);
    patience = "3s";
    add_option(command, "--for TIME", patience,
               "Time to wait for the answer, such as 10s or 5min (3s)", problem_of_time);
    add_output_options(command, settings);
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool trim --pid 4711\n"
    "  tensorpool trim --name train --for 1min\n"
    "\n"
    "The status is 1 if the process did not answer in time.";

constexpr const char* details =
    "All pools of the process release free memory, as MemoryPool::trim() does. Arenas and "
    "allocators of device memory keep theirs. The process answers when one of its threads next "
    "takes a slow path of a pool, for example for a large block or after some hundred small ones. "
    "A process that makes no such call does not answer. The request remains, and is answered at "
    "the next such call. If the background trimmer runs, its thread answers at once; with "
    "TENSORPOOL_RETAIN_BACKGROUND=on, it runs from the start on.\n";

}  // namespace

void add_trim(CLI::App& app, Settings& settings) {
    add_subcommand(app, settings,
                   {"trim", "Make a running process release free memory", footer, details},
                   trim_process, declare_options);
}

}  // namespace tensorpool::command
