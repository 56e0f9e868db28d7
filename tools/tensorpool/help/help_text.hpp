#pragma once

/// @file
/// Formats the help from the declarations in CLI11.

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tensorpool::command {

/// Returns the help text. It fits a screen of 80 x 24.
std::string help_text(const CLI::App& app);

/// Returns the names of an option and its placeholder: "-i, --interval S".
std::string names_of(const CLI::Option& option);
/// Returns the visible options in the order of their declaration, with --help last.
std::vector<const CLI::Option*> shown_options(const CLI::App& app);
/// Returns the placeholders of the positional arguments, such as FILE.
std::vector<std::string> required_arguments(const CLI::App& app);
/// Returns the visible subcommands. Hidden ones have an empty group.
std::vector<const CLI::App*> shown_subcommands(const CLI::App& app);

}  // namespace tensorpool::command
