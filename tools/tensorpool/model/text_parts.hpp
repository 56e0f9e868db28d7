#pragma once

/// @file
/// Lines of the text report.

#include <string>

#include "common/table.hpp"

namespace tensorpool::command::model {

/// "format                 GGUF  version 3".
std::string fact_line(const std::string& name, const std::string& figure,
                      const std::string& note = "");
/// A title, an empty line before and behind it, and the table, without spaces at the ends of lines.
std::string titled_table(const std::string& title, const Table& table);
/// In lines as wide as a terminal, made printable.
std::string paragraph(const std::string& text);

}  // namespace tensorpool::command::model
