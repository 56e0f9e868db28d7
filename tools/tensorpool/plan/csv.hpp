#pragma once

/// @file
/// A reader of comma-separated values (RFC 4180), row by row.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::command::planning {

struct CsvCell {
    std::string text;        ///< without quotes and surrounding spaces
    std::size_t line = 0;    ///< the line where it begins, from 1
    std::size_t column = 0;  ///< the byte of the line where it begins, from 1
};

/// A syntax error, thrown by CsvRows.
struct CsvProblem {
    std::size_t line;
    std::size_t column;
    std::string what;
};

class CsvRows {
public:
    /// Requires: `text` outlives the reader. A byte order mark at its beginning is skipped.
    explicit CsvRows(std::string_view text);

    /// Reads the next row that is not blank. Returns false at the end of the text. Throws
    /// CsvProblem for a quote that is not closed, or is closed within a value.
    bool next(std::vector<CsvCell>& row);

private:
    bool at_end() const noexcept { return at_ == text_.size(); }
    bool at_line_end() const noexcept;
    bool skip_line_end();
    void skip_spaces();
    CsvCell cell_here() const;
    CsvCell plain();
    CsvCell quoted();

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
    std::size_t line_begin_ = 0;
};

}  // namespace tensorpool::command::planning
