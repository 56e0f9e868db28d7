#pragma once

/// @file
/// Options that several subcommands take.

#include "common/settings.hpp"
#include "common/units.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tensorpool::command {

/// --pid and --name. Returns that of --name.
CLI::Option* add_process_options(CLI::App& command, Settings& settings);
/// The same, and --wait.
void add_target_options(CLI::App& command, Settings& settings);
/// --json and --bytes.
void add_output_options(CLI::App& command, Settings& settings);

struct Repetition {
    double interval = 1;      ///< seconds
    std::uint64_t times = 0;  ///< 0: without end
};
/// -i and -n.
void add_repetition_options(CLI::App& command, Repetition& repetition);

inline Sizes sizes_of(const Settings& settings) {
    return settings.bytes ? Sizes::bytes : Sizes::iec;
}

}  // namespace tensorpool::command
