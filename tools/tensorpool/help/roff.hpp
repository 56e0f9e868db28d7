#pragma once

/// @file
/// Text for `man`.

#include <string>
#include <string_view>

namespace tensorpool::command {

/// The text as it is, whatever in it means something to roff.
std::string roff(std::string_view text);

/// What begins a page: "tensorpool\-top", section, and one sentence that says what it is.
std::string page_head(std::string_view name, int section, std::string_view sentence);
std::string section(std::string_view title);
/// Bold, with an indented description below it.
std::string item(std::string_view name, std::string_view description);
/// Paragraphs between empty lines; lines that begin with two spaces stay as they are.
std::string paragraphs(std::string_view text);

}  // namespace tensorpool::command
