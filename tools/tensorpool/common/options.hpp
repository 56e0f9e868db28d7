#pragma once

/// @file
/// Options that several subcommands share.

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
/// Adds a subcommand. If it is chosen, `run` is called; it returns an ExitCode, and may throw
/// CommandError and AttachError.
CLI::App* add_subcommand(CLI::App& app, Settings& settings, const About& about,
                         std::function<int()> run);

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

/// Adds the file that the subcommand reads.
inline CLI::Option* add_file(CLI::App& command, std::string& path, const std::string& sentence) {
    return command.add_option("FILE", path, sentence)->option_text("FILE")->required();
}

/// Adds --pid and --name. Returns the option --name.
CLI::Option* add_process_options(CLI::App& command, Settings& settings);
/// Adds --pid, --name and --wait.
void add_target_options(CLI::App& command, Settings& settings);
/// Adds --json and --bytes.
void add_output_options(CLI::App& command, Settings& settings);

struct Repetition {
    double interval = 1;      ///< seconds
    std::uint64_t times = 0;  ///< 0: unlimited
};
/// Adds -i and -n.
void add_repetition_options(CLI::App& command, Repetition& repetition);

/// The option of subcommands that start a program.
inline constexpr const char* parts_option = "--with";
/// Adds it: the parts that are enabled in the program. Returns it.
CLI::Option* add_parts_option(CLI::App& command, std::vector<std::string>& parts);

/// Checks the arguments of a subcommand that reads a process or starts a program `with` parts.
/// Throws CommandError unless they name one of the two.
void check_program(const char* subcommand, const Settings& settings,
                   const std::vector<std::string>& with);

inline Sizes sizes_of(const Settings& settings) {
    return settings.bytes ? Sizes::bytes : Sizes::iec;
}

}  // namespace tensorpool::command
