#include "common/options.hpp"

#include <fmt/format.h>

#include <utility>

namespace tensorpool::command {

CLI::App* add_subcommand(CLI::App& app, Settings& settings, const About& about,
                         std::function<int()> run) {
    CLI::App* const command = app.add_subcommand(about.name, about.sentence);
    command->footer(about.footer);
    settings.details[about.name] = about.details;
    command->callback([&settings, run = std::move(run)] { settings.run = run; });
    return command;
}

CLI::Option* add_process_options(CLI::App& command, Settings& settings) {
    CLI::Option* const process =
        add_option(command, "-p,--pid PID", settings.process, "The process with this id",
                   CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
    return add_option(command, "--name NAME", settings.name,
                      "The process with this name, or part of it")
        ->excludes(process);
}

void add_target_options(CLI::App& command, Settings& settings) {
    CLI::Option* const name = add_process_options(command, settings);
    command
        .add_flag("--wait", settings.wait,
                  "Wait for a process of that name, and for the next when it ends")
        ->needs(name);
}

void add_output_options(CLI::App& command, Settings& settings) {
    command.add_flag("--json", settings.json, "Print JSON, one object per line");
    command.add_flag("--bytes", settings.bytes, "Print sizes as numbers of bytes, not as MiB");
}

void add_repetition_options(CLI::App& command, Repetition& repetition) {
    // At intervals below 10 ms, the measurement would show mostly the reader's own load.
    add_option(command, "-i,--interval S", repetition.interval, "Seconds between samples (1)",
               CLI::Range(0.01, 86400.0));
    add_option(command, "-n,--times N", repetition.times, "Number of samples (unlimited)",
               CLI::PositiveNumber);
}

CLI::Option* add_parts_option(CLI::App& command, std::vector<std::string>& parts) {
    return add_option(command, std::string(parts_option) + " PARTS", parts,
                      "malloc, numpy, torch (all), holders, profile; or none")
        ->delimiter(',')
        ->allow_extra_args(false);
}

void check_program(const char* subcommand, const Settings& settings,
                   const std::vector<std::string>& with) {
    const auto refuse = [&](const char* found, const std::string& expected) {
        throw CommandError(wrong_usage,
                           fmt::format("{}: found {}; expected {}", subcommand, found, expected));
    };
    if (settings.lacks_program) {
        refuse("nothing after --",
               fmt::format("a program to start, as in `tensorpool {} -- python3 train.py`",
                           subcommand));
    }
    if (!settings.program.empty() && (settings.process != 0 || !settings.name.empty())) {
        refuse("a process and a program to start", "one of them");
    }
    if (settings.program.empty() && !with.empty()) {
        refuse("--with without a program", "a program to start, after --");
    }
}

}  // namespace tensorpool::command
