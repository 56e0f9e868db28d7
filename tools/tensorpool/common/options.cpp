#include "common/options.hpp"

#include <CLI/CLI.hpp>

namespace tensorpool::command {

CLI::Option* add_process_options(CLI::App& command, Settings& settings) {
    CLI::Option* const process =
        command.add_option("-p,--pid", settings.process, "The process with this id")
            ->option_text("PID")
            ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
    return command.add_option("--name", settings.name, "The process with this name, or part of it")
        ->option_text("NAME")
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
    command.add_option("-i,--interval", repetition.interval, "Seconds between samples (1)")
        ->option_text("S")
        ->check(CLI::Range(0.01, 86400.0));
    command.add_option("-n,--times", repetition.times, "Number of samples (unlimited)")
        ->option_text("N")
        ->check(CLI::PositiveNumber);
}

CLI::Option* add_parts_option(CLI::App& command, std::vector<std::string>& parts) {
    return command
        .add_option(parts_option, parts, "malloc, numpy, torch (all), holders, profile; or none")
        ->option_text("PARTS")
        ->delimiter(',')
        ->allow_extra_args(false);
}

}  // namespace tensorpool::command
