#pragma once

/// @file
/// Comma-separated values (RFC 4180), row by row.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::command::planning {

struct CsvCell {
    std::string text;        ///< without its quotes and the spaces around it
    std::size_t line = 0;    ///< where it begins, from 1
    std::size_t column = 0;  ///< the same, in bytes of the line
};

/// What hinders from reading on.
struct CsvProblem {
    std::size_t line;
    std::size_t column;
    std::string what;
};

class CsvRows {
public:
    /// `text` outlives it. A byte order mark at its beginning is passed over.
    explicit CsvRows(std::string_view text);

    /// The next row that is not blank; false at the end. Throws CsvProblem for quotes that do not
    /// end, or that end in the middle of a value.
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
