#pragma once

/// @file
/// What `tensorpool inspect` tells, as facts and tables: the same for a terminal and for HTML.

#include <string>
#include <vector>

#include "common/table.hpp"
#include "common/units.hpp"
#include "inspect/analysis.hpp"

namespace tensorpool::command::inspect {

struct Fact {
    std::string name;
    std::string figure;
    std::string note;  ///< "": none
};

struct Section {
    std::string id;  ///< of lower-case letters and dashes
    std::string title;
    std::string note;  ///< sentences; "": none
    Table table;       ///< texts as they are in the trace: neither printable nor escaped
    /// Of each row, lines that belong to it; empty where there are none.
    std::vector<std::vector<std::string>> details;
};

/// The most important first.
std::vector<Fact> facts_of(const Analysis& analysis, Sizes sizes);
/// What makes figures less than exact, a sentence each.
std::vector<std::string> doubts_of(const Analysis& analysis);
/// Tables without rows are left out. `top`: rows where there can be many.
std::vector<Section> sections_of(const Analysis& analysis, Sizes sizes, std::size_t top);

}  // namespace tensorpool::command::inspect
