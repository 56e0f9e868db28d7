#include <fmt/format.h>

#include "common/options.hpp"
#include "common/output.hpp"
#include "common/target.hpp"
#include "record/session.hpp"

namespace tensorpool::command {
namespace {

struct Arguments {
    std::string time;
    std::uint64_t stack_interval = 0;
    std::string path;
};

int record_process(const Arguments& arguments, const Settings& settings) {
    const auto time = parse_time(arguments.time);
    StatisticsReader process = attach_chosen(settings);
    const std::string path = arguments.path.empty()
                                 ? fmt::format("tensorpool-{}.tpt", process.process())
                                 : arguments.path;
    EndSignals signals;
    record::Session session(process, arguments.stack_interval, path);
    print_error(fmt::format("tensorpool: requested process {} to record; writing {} until Ctrl-C",
                            process.process(), printable(path)));
    const record::Outcome outcome = session.run(signals, time);
    if (settings.json) {
        print_line(to_json(outcome));
    } else if (outcome.has_begun) {
        print_line(to_text(outcome, sizes_of(settings)));
    }
    const std::string complaint = complaint_of(outcome);
    if (!complaint.empty()) throw CommandError(exit_code_of(outcome), complaint);
    return success;
}

void declare_options(CLI::App& command, Arguments& arguments, Settings& settings) {
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

CLI::App* add_record(CLI::App& app, Settings& settings) {
    const auto arguments = std::make_shared<Arguments>();
    CLI::App* const command = add_subcommand(
        app, settings,
        {"record", "Record the calls of a running program into a file", footer, details},
        [&settings, arguments] { return record_process(*arguments, settings); });
    declare_options(*command, *arguments, settings);
    return command;
}

}  // namespace tensorpool::command
