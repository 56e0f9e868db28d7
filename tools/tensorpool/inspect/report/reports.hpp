#pragma once

#include <string>

#include "common/units.hpp"
#include "inspect/analysis.hpp"

namespace tensorpool::command::inspect {

/// Returns the report for a terminal. Ends with a newline.
std::string text_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top);
/// Returns one line of JSON without a newline; sizes are in bytes, times in nanoseconds.
std::string json_report(const Analysis& analysis);
/// Returns a self-contained HTML page.
std::string html_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top);

}  // namespace tensorpool::command::inspect
