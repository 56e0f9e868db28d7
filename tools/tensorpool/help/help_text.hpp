#pragma once

/// @file
/// Formats the help, the manual and the completion from the declarations in CLI11.

#include <string_view>

#include "common/settings.hpp"

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

/// Returns the text with all characters escaped that are special to roff.
std::string roff(std::string_view text);

/// Returns the head of a page: its name (such as "tensorpool-top"), its section, and a one-sentence
/// description.
std::string page_head(std::string_view name, int section, std::string_view sentence);
std::string section(std::string_view title);
/// Returns a bold name with an indented description below it.
std::string item(std::string_view name, std::string_view description);
/// Returns paragraphs, which empty lines separate in `text`. Lines that begin with two spaces are
/// printed verbatim.
std::string paragraphs(std::string_view text);

/// Return pages in the format of `man`.
std::string overview_page(const CLI::App& app);
std::string subcommand_page(const CLI::App& subcommand, const Settings& settings);
/// Returns the page of all metrics with their units, as the library describes them.
std::string metrics_page();

/// Returns the completion script for bash.
std::string bash_completion(const CLI::App& app);

}  // namespace tensorpool::command
