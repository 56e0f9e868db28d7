#pragma once

/// @file
/// The manual and the completion, made from what CLI11 was told.

#include <string>

#include "common/settings.hpp"

namespace CLI {
class App;
}  // namespace CLI

namespace tensorpool::command {

/// Pages as `man` reads them.
std::string overview_page(const CLI::App& app);
std::string subcommand_page(const CLI::App& subcommand, const Settings& settings);
/// All figures with their units, as the library describes them.
std::string figures_page();

/// A completion for bash.
std::string bash_completion(const CLI::App& app);

}  // namespace tensorpool::command
