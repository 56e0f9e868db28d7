#pragma once

/// @file
/// A report's timeline, drawn without any library.

#include <string>

#include "common/units.hpp"
#include "inspect/timeline.hpp"

namespace tensorpool::command::inspect {

/// Cards of HTML: bytes alive by source and by scope, and what they take.
std::string charts_html(const Timeline& timeline, Sizes sizes);
/// The figures behind them as JSON, for report.js; fit for a `script` element.
std::string charts_json(const Timeline& timeline, Sizes sizes);

}  // namespace tensorpool::command::inspect
