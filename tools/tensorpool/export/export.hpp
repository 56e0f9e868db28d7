#pragma once

#include <CLI/CLI.hpp>

#include "common/settings.hpp"

namespace tensorpool::command {

/// `tensorpool export FILE --format …`.
CLI::App* add_export(CLI::App& app, Settings& settings);

}  // namespace tensorpool::command
