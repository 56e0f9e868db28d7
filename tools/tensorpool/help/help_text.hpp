#pragma once

/// @file
/// Formats the help from the declarations in CLI11, like the manual and the completion.

#include <string_view>

#include <string>
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
/// Returns the visible subcommands. Hidden ones have an empty group.
std::vector<const CLI::App*> shown_subcommands(const CLI::App& app);

/// Returns the text with all characters escaped that are special to roff.
std::string roff(std::string_view text);
/// Returns paragraphs, which empty lines separate in `text`. Lines that begin with two spaces are
/// printed verbatim.
std::string paragraphs(std::string_view text);

}  // namespace tensorpool::command
