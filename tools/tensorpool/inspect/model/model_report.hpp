#pragma once

/// @file
/// The output of `tensorpool inspect MODEL`.

#include <optional>
#include <string>

#include "common/units.hpp"
#include "inspect/model/contents.hpp"
#include "inspect/model/estimate/estimation.hpp"

namespace tensorpool::command::model {

struct Report {
    const ModelFile& file;
    const Contents& contents;
    std::size_t top = 10;                  ///< rows of long tables
    std::optional<Estimation> estimation;  ///< with --estimate
};

/// Returns the report for a terminal. Ends with a newline.
std::string text_report(const Report& report, Sizes sizes);
/// Returns one line of JSON with all tensors and sizes in bytes, without a newline.
std::string json_report(const Report& report);

/// Returns the estimate's part of the report for a terminal.
std::string estimation_text(const Estimation& estimation, Sizes sizes);
/// Returns the estimate as a JSON object.
std::string estimation_json(const Estimation& estimation);

}  // namespace tensorpool::command::model
