#pragma once

#include <CLI/CLI.hpp>

#include "common/settings.hpp"

namespace tensorpool::command {

/// `tensorpool serve`: the page, its data and the metrics, until SIGINT, SIGTERM or SIGHUP. Built
/// without its libraries it says which are missing.
CLI::App* add_serve(CLI::App& app, Settings& settings);

}  // namespace tensorpool::command
