#pragma once

/// @file
/// The command line of `tensorpool`. It is declared once; help, manual and completion are generated
/// from it.

#include <memory>

#include "common/settings.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace tensorpool::command {

/// Adds the subcommands to the command line. Generated from the list in subcommands.cmake.
void add_subcommands(CLI::App& app, Settings& settings);

/// Declares all subcommands. `settings` must outlive the result.
std::unique_ptr<CLI::App> declare(Settings& settings);

/// Runs the command, as `main` does. Returns an ExitCode; prints to standard output and standard
/// error.
int run_command(int count, const char* const* arguments);

}  // namespace tensorpool::command
