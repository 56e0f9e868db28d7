#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "statistics/records/record_table.hpp"

namespace tensorpool::read {

/// The table of a kind, read from the text that a segment carries. It contains no index and no
/// offset that leads outside, whatever the text is.
struct DescribedTable {
    std::string text;  // which all names are parts of
    std::vector<statistics::Field> fields;
    std::vector<statistics::Rule> rules;
    std::vector<statistics::Rule> derivations;
    std::vector<statistics::Family> families;
    std::vector<statistics::Column> columns;
    statistics::RecordTable table = {};
};

/// Returns nullptr if the text describes no records of this size. Throws std::bad_alloc.
std::shared_ptr<const statistics::RecordTable> read_table(std::string_view text,
                                                          std::size_t record_bytes);

}  // namespace tensorpool::read
