#pragma once

/// @file
/// The output of `tensorpool inspect MODEL`.

#include <optional>
#include <string>

#include <tensorpool/model_file.hpp>

#include "common/table.hpp"
#include "common/units.hpp"
#include "inspect/model/contents.hpp"
#include "inspect/model/estimation.hpp"

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

/// Returns a value for people, on one line. Long strings are cut. Arrays are shown by their size
/// ("array of 151,936 strings"), except for short arrays of whole numbers. Control characters of
/// the file are not yet escaped.
std::string text_of(const MetadataValue& value);

/// Returns a line such as "format                 GGUF  version 3".
std::string fact_line(const std::string& name, const std::string& value,
                      const std::string& note = "");
/// Returns a title with an empty line before and after it, then the table, without trailing spaces.
std::string titled_table(const std::string& title, const Table& table);
/// Returns the text wrapped to 79 columns and indented, with control characters escaped.
std::string paragraph(const std::string& text, const char* indent = "");

}  // namespace tensorpool::command::model
