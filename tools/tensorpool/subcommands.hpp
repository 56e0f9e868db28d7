#pragma once

/// @file
/// Each in the file of its name; `serve` in a folder of its own.

#include <CLI/CLI.hpp>

#include "common/settings.hpp"

namespace tensorpool::command {

CLI::App* add_ls(CLI::App& app, Settings& settings);
CLI::App* add_top(CLI::App& app, Settings& settings);
CLI::App* add_stat(CLI::App& app, Settings& settings);
CLI::App* add_events(CLI::App& app, Settings& settings);
CLI::App* add_doctor(CLI::App& app, Settings& settings);
/// In the folder record/.
CLI::App* add_record(CLI::App& app, Settings& settings);
/// Makes the manual and the completion while the project is built; not shown.
CLI::App* add_manual(CLI::App& app, Settings& settings);

}  // namespace tensorpool::command
