#pragma once

#include <string>

#include "common/units.hpp"
#include "inspect/analysis.hpp"

namespace tensorpool::command::inspect {

/// For a terminal; ends with a newline.
std::string text_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top);
/// One line of JSON, sizes in bytes, times in nanoseconds; no newline.
std::string json_report(const Analysis& analysis);
/// A whole page of HTML that needs nothing but itself.
std::string html_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top);

}  // namespace tensorpool::command::inspect
