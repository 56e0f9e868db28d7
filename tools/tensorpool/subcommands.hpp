#pragma once

/// @file
/// Each subcommand adds itself to the command line. CLI11's headers take a compiler five seconds,
/// so this header only declares its classes.

#include "common/settings.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace tensorpool::command {

CLI::App* add_ls(CLI::App& app, Settings& settings);
CLI::App* add_top(CLI::App& app, Settings& settings);
CLI::App* add_stat(CLI::App& app, Settings& settings);
CLI::App* add_events(CLI::App& app, Settings& settings);
/// If built without its libraries, `serve` reports which are missing.
CLI::App* add_serve(CLI::App& app, Settings& settings);
CLI::App* add_run(CLI::App& app, Settings& settings);
CLI::App* add_record(CLI::App& app, Settings& settings);
CLI::App* add_trim(CLI::App& app, Settings& settings);
CLI::App* add_explain(CLI::App& app, Settings& settings);
CLI::App* add_profile(CLI::App& app, Settings& settings);
CLI::App* add_leaks(CLI::App& app, Settings& settings);
CLI::App* add_holders(CLI::App& app, Settings& settings);
CLI::App* add_replay(CLI::App& app, Settings& settings);
CLI::App* add_inspect(CLI::App& app, Settings& settings);
CLI::App* add_plan(CLI::App& app, Settings& settings);
CLI::App* add_export(CLI::App& app, Settings& settings);
CLI::App* add_doctor(CLI::App& app, Settings& settings);
/// Generates the manual and the completion during the build; hidden from the help.
CLI::App* add_manual(CLI::App& app, Settings& settings);

}  // namespace tensorpool::command
