#pragma once

#include <CLI/CLI.hpp>

#include "common/settings.hpp"

namespace tensorpool::command {

CLI::App* add_run(CLI::App& app, Settings& settings);

}  // namespace tensorpool::command
