#pragma once

/// @file
/// Generates the manual and the completion from the declarations in CLI11.

#include <string>

#include "common/settings.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace tensorpool::command {

/// Return pages in the format of `man`.
std::string overview_page(const CLI::App& app);
std::string subcommand_page(const CLI::App& subcommand, const Settings& settings);
/// Returns the page of all metrics with their units, as the library describes them.
std::string metrics_page();

/// Returns the completion script for bash.
std::string bash_completion(const CLI::App& app);

}  // namespace tensorpool::command
