#pragma once

/// @file
/// Options that several subcommands share.

#include <utility>

#include <CLI/CLI.hpp>

#include "common/settings.hpp"
#include "common/units.hpp"

namespace tensorpool::command {

/// What the help and the manual page say about a subcommand.
struct About {
    const char* name;
    const char* sentence;
    std::string footer;
    /// What only the manual page says. Empty lines separate paragraphs; lines that begin with two
    /// spaces are printed verbatim.
    std::string details;
};

/// Adds an option. `names` are its names and its placeholder, such as "-o,--output FILE".
template <class Value>
CLI::Option* add_option(CLI::App& command, const std::string& names, Value& value,
                        const std::string& sentence) {
    const std::size_t space = names.find(' ');
    return command.add_option(names.substr(0, space), value, sentence)
        ->option_text(names.substr(space + 1));
}
/// Adds an option with a check: a function that returns why a text is invalid, or "", or a
/// validator of CLI11.
template <class Value, class Check>
CLI::Option* add_option(CLI::App& command, const std::string& names, Value& value,
                        const std::string& sentence, const Check& check) {
    return add_option(command, names, value, sentence)->check(check);
}
/// Returns a transformation of a size such as 64MiB into bytes, for options that are numbers.
inline CLI::Validator as_size() {
    return {[](std::string& text) {
                std::string problem = problem_of_size(text);
                if (problem.empty()) text = std::to_string(*parse_size(text));
                return problem;
            },
            ""};
}

inline CLI::Option* add_file(CLI::App& command, std::string& path, const std::string& sentence) {
    return command.add_option("FILE", path, sentence)->option_text("FILE")->required();
}

struct Repetition {
    double interval = 1;      ///< seconds
    std::uint64_t times = 0;  ///< 0: unlimited

    std::chrono::steady_clock::duration step() const {
        return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(interval));
    }
};

/// The option of subcommands that start a program.
inline constexpr const char* parts_option = "--with";

inline Sizes sizes_of(const Settings& settings) {
    return settings.bytes ? Sizes::bytes : Sizes::iec;
}

/// Adds a subcommand. If it is chosen, `run` is called; it returns an ExitCode, and may throw
/// CommandError and AttachError.
inline CLI::App* add_subcommand(CLI::App& app, Settings& settings, const About& about,
                                std::function<int()> run) {
    CLI::App* const command = app.add_subcommand(about.name, about.sentence);
    command->footer(about.footer);
    settings.details[about.name] = about.details;
    command->callback([&settings, run = std::move(run)] { settings.run = run; });
    return command;
}

/// Adds a subcommand whose options `declare` adds. If it is chosen, `run` is called; it
/// returns an ExitCode, and may throw CommandError and AttachError.
template <class Options>
CLI::App* add_subcommand(CLI::App& app, Settings& settings, const About& about,
                         int (*run)(const Settings& settings, const Options& options),
                         void (*declare)(CLI::App& command, Settings& settings, Options& options)) {
    const auto options = std::make_shared<Options>();
    CLI::App* const command = add_subcommand(
        app, settings, about, [&settings, options, run] { return run(settings, *options); });
    declare(*command, settings, *options);
    return command;
}

/// Adds --pid and --name. Returns the option --name.
inline CLI::Option* add_process_options(CLI::App& command, Settings& settings) {
    CLI::Option* const process =
        add_option(command, "-p,--pid PID", settings.process, "The process with this id",
                   CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 32));
    return add_option(command, "--name NAME", settings.name,
                      "The process with this name, or part of it")
        ->excludes(process);
}

/// Adds --pid, --name and --wait.
inline void add_target_options(CLI::App& command, Settings& settings) {
    CLI::Option* const name = add_process_options(command, settings);
    command
        .add_flag("--wait", settings.wait,
                  "Wait for a process of that name, and for the next when it ends")
        ->needs(name);
}

/// Adds --json and --bytes.
inline void add_output_options(CLI::App& command, Settings& settings) {
    command.add_flag("--json", settings.json, "Print JSON, one object per line");
    command.add_flag("--bytes", settings.bytes, "Print sizes as numbers of bytes, not as MiB");
}

/// Adds -i and -n.
inline void add_repetition_options(CLI::App& command, Repetition& repetition) {
    // At intervals below 10 ms, the measurement would show mostly the reader's own load.
    add_option(command, "-i,--interval S", repetition.interval, "Seconds between samples (1)",
               CLI::Range(0.01, 86400.0));
    add_option(command, "-n,--times N", repetition.times, "Number of samples (unlimited)",
               CLI::PositiveNumber);
}

/// Adds it: the parts that are enabled in the program. Returns it.
inline CLI::Option* add_parts_option(CLI::App& command, std::vector<std::string>& parts) {
    return add_option(command, std::string(parts_option) + " PARTS", parts,
                      "malloc, numpy, torch (all), holders, profile; or none")
        ->delimiter(',')
        ->allow_extra_args(false);
}

/// Checks the arguments of a subcommand that reads a process or starts a program `with` parts.
/// Throws CommandError unless they name one of the two.
inline void check_program(const char* subcommand, const Settings& settings,
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
