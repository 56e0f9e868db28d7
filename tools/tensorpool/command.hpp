#pragma once

/// @file
/// The command line of `tensorpool`, declared once: help, manual and completion are made from it.

#include <memory>

#include "common/settings.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace tensorpool::command {

/// All subcommands. `settings` must outlive the result.
std::unique_ptr<CLI::App> declare(Settings& settings);

/// `main`: returns an ExitCode, and prints to standard output and standard error.
int run_command(int count, const char* const* words);

}  // namespace tensorpool::command
