#pragma once

/// @file
/// Formats text for `man`.

#include <string>
#include <string_view>

namespace tensorpool::command {

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

}  // namespace tensorpool::command
