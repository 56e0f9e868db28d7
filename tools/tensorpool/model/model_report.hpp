#pragma once

/// @file
/// What `tensorpool inspect MODEL` prints.

#include <optional>
#include <string>

#include "common/units.hpp"
#include "model/contents.hpp"
#include "model/estimate/estimation.hpp"

namespace tensorpool::command::model {

struct Report {
    const ModelFile& file;
    const Contents& contents;
    std::size_t top = 10;                  ///< rows of long tables
    std::optional<Estimation> estimation;  ///< where it was asked for
};

/// For a terminal; ends with a newline.
std::string text_report(const Report& report, Sizes sizes);
/// One line of JSON with all tensors, sizes in bytes; no newline.
std::string json_report(const Report& report);

/// What of these belongs to the estimate.
std::string estimation_text(const Estimation& estimation, Sizes sizes);
/// An object of JSON.
std::string estimation_json(const Estimation& estimation);

}  // namespace tensorpool::command::model
