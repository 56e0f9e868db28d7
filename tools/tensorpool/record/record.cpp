#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <string>

#include "common/output.hpp"
#include "common/printable.hpp"
#include "common/target.hpp"
#include "options.hpp"
#include "record/session.hpp"
#include "record/time_text.hpp"
#include "subcommands.hpp"

namespace tensorpool::command {
namespace {

struct Words {
    std::string time;
    std::uint64_t stack_interval = 0;
    std::string path;
};

int record_process(const Words& words, const Settings& settings) try {
    const auto time = record::parse_time(words.time);
    StatisticsReader process = attach_chosen(settings);
    const std::string path =
        words.path.empty() ? fmt::format("tensorpool-{}.tpt", process.process()) : words.path;
    EndSignals signals;
    record::Session session(process, words.stack_interval, path);
    fmt::print(stderr, "tensorpool: asked process {} to record; writing {} until Ctrl-C\n",
               process.process(), printable(path));
    const record::Outcome outcome = session.run(signals, time);
    if (settings.json) {
        print_line(to_json(outcome));
    } else if (outcome.has_begun) {
        print_line(to_text(outcome, sizes_of(settings)));
    }
    const std::string complaint = complaint_of(outcome);
    if (!complaint.empty()) throw CommandError(exit_code_of(outcome), complaint);
    return success;
} catch (const AttachError& error) {
    throw to_command_error(error);
}

void declare_options(CLI::App& command, Words& words, Settings& settings) {
    add_process_options(command, settings);
    command.add_option("--for", words.time, "Record so long, as 10s or 5min (until Ctrl-C)")
        ->option_text("TIME")
        ->check(CLI::Validator(record::problem_of_time, ""));
    command
        .add_option("--stacks", words.stack_interval,
                    "Note the call stack about once in so many bytes allocated, as 512KiB")
        ->option_text("SIZE")
        ->transform(CLI::AsSizeValue(true));
    command.add_option("-o,--output", words.path, "The file to write (tensorpool-PID.tpt)")
        ->option_text("FILE");
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
    "The process is neither stopped nor changed: it sees that it is to record when one of its "
    "threads next takes a slow path of a pool, an arena or a scratch, such as for a large block or "
    "after some hundred small ones; from then on the calls of all its threads are recorded, each "
    "from its next call on. A call costs some 20 ns more meanwhile. Each thread writes into a ring "
    "of 16,384 entries, which is emptied up to some thousand times a second; where a ring is full "
    "its thread goes on and the calls without room are counted. What is in the rings outlives a "
    "process that is killed. A process can be recorded by one recorder at a time. Not recorded are "
    "calls on a scratch over a caller's own buffer that was there before.\n"
    "\n"
    "The file is readable by its user alone: it holds addresses. Where the disk is full recording "
    "ends with status 1, and what is in the file can be read.\n";

}  // namespace

CLI::App* add_record(CLI::App& app, Settings& settings) {
    CLI::App* const command =
        app.add_subcommand("record", "Record the calls of a running program into a file");
    const auto words = std::make_shared<Words>();
    declare_options(*command, *words, settings);
    command->footer(footer);
    settings.details["record"] = details;
    command->callback([&settings, words] {
        settings.run = [&settings, words] { return record_process(*words, settings); };
    });
    return command;
}

}  // namespace tensorpool::command
