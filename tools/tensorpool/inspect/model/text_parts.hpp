#pragma once

/// @file
/// Lines of the text report.

#include <string>

#include "common/table.hpp"

namespace tensorpool::command::model {

/// Returns a line such as "format                 GGUF  version 3".
std::string fact_line(const std::string& name, const std::string& value,
                      const std::string& note = "");
/// Returns a title with an empty line before and after it, then the table, without trailing spaces.
std::string titled_table(const std::string& title, const Table& table);
/// Returns the text wrapped to 79 columns, with control characters escaped.
std::string paragraph(const std::string& text);

}  // namespace tensorpool::command::model
