#pragma once

/// @file
/// Options that several subcommands share.

#include <string>
#include <vector>

#include "common/settings.hpp"
#include "common/units.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tensorpool::command {

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

inline Sizes sizes_of(const Settings& settings) {
    return settings.bytes ? Sizes::bytes : Sizes::iec;
}

}  // namespace tensorpool::command
