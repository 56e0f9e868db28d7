#pragma once

#include <CLI/CLI.hpp>

#include "common/settings.hpp"

namespace tensorpool::command {

/// `tensorpool plan FILE`.
CLI::App* add_plan(CLI::App& app, Settings& settings);

}  // namespace tensorpool::command
