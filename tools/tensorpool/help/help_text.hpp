#pragma once

/// @file
/// Help as text, from what CLI11 was told.

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tensorpool::command {

/// Fits a screen of 80 x 24.
std::string help_text(const CLI::App& app);

/// "-i, --interval S", with what option_text() says that its value is.
std::string names_of(const CLI::Option& option);
/// Those to be shown, in the order in which they were declared; --help comes last.
std::vector<const CLI::Option*> shown_options(const CLI::App& app);
/// What stands without an option's name, such as FILE.
std::vector<std::string> needed_words(const CLI::App& app);
/// Those to be shown: hidden ones have an empty group.
std::vector<const CLI::App*> shown_subcommands(const CLI::App& app);

/// Lines of whole words, of at most `columns`, which may be one word longer than that.
std::vector<std::string> wrap(std::string_view text, std::size_t columns);

}  // namespace tensorpool::command
