#pragma once

/// @file
/// Each subcommand adds itself to the command line. CLI11 takes a compiler five seconds, so headers
/// only declare its classes.

#include "common/settings.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace tensorpool::command {

CLI::App* add_ls(CLI::App& app, Settings& settings);
CLI::App* add_top(CLI::App& app, Settings& settings);
CLI::App* add_stat(CLI::App& app, Settings& settings);
CLI::App* add_events(CLI::App& app, Settings& settings);
/// Built without its libraries it says which are missing.
CLI::App* add_serve(CLI::App& app, Settings& settings);
CLI::App* add_run(CLI::App& app, Settings& settings);
CLI::App* add_record(CLI::App& app, Settings& settings);
CLI::App* add_trim(CLI::App& app, Settings& settings);
CLI::App* add_replay(CLI::App& app, Settings& settings);
CLI::App* add_inspect(CLI::App& app, Settings& settings);
CLI::App* add_plan(CLI::App& app, Settings& settings);
CLI::App* add_export(CLI::App& app, Settings& settings);
CLI::App* add_doctor(CLI::App& app, Settings& settings);
/// Makes the manual and the completion while the project is built; not shown.
CLI::App* add_manual(CLI::App& app, Settings& settings);

}  // namespace tensorpool::command
