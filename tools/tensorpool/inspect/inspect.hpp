#pragma once

#include <CLI/CLI.hpp>

#include "common/settings.hpp"

namespace tensorpool::command {

/// `tensorpool inspect FILE`.
CLI::App* add_inspect(CLI::App& app, Settings& settings);

}  // namespace tensorpool::command
