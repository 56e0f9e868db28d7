#pragma once

/// @file
/// Charts of a report's timeline, drawn as SVG without a library.

#include <string>

#include "common/units.hpp"
#include "inspect/timeline.hpp"

namespace tensorpool::command::inspect {

/// Returns HTML with charts of the bytes alive by source and by scope, and of the memory needed.
std::string charts_html(const Timeline& timeline, Sizes sizes);
/// Returns the values of the charts as JSON for report.js, safe within a `script` element.
std::string charts_json(const Timeline& timeline, Sizes sizes);

}  // namespace tensorpool::command::inspect
