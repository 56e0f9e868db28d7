#pragma once

/// @file
/// The contents of the report as facts and tables, and their forms: text, JSON and HTML.

#include "common/table.hpp"
#include "common/units.hpp"
#include "inspect/analysis.hpp"

namespace tensorpool::command::inspect {

struct Fact {
    std::string name;
    std::string value;
    std::string note;  ///< "": none
};

struct Section {
    std::string title;
    std::string note;  ///< sentences; "": none
    Table table;       ///< with texts of the trace that are not yet escaped
    /// Detail lines of each row; empty if there are none.
    std::vector<std::vector<std::string>> details;
};

/// Returns the facts, the most important first.
std::vector<Fact> facts_of(const Analysis& analysis, Sizes sizes);
/// Returns sentences about what makes the values inexact.
std::vector<std::string> doubts_of(const Analysis& analysis);
/// Returns the tables that have rows. `top` is the maximum number of rows in long tables.
std::vector<Section> sections_of(const Analysis& analysis, Sizes sizes, std::size_t top);

std::string text_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top);
/// Returns one line of JSON without a newline; sizes are in bytes, times in nanoseconds.
std::string json_report(const Analysis& analysis);
std::string html_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top);

}  // namespace tensorpool::command::inspect
