#pragma once

/// @file
/// Prints lines that stay and, on a terminal, one changing line at the bottom.

#include <chrono>
#include <cstdio>
#include <string>

namespace tensorpool::photos {

/// Writes to one stream, from one thread.
class Progress {
public:
    /// On a terminal, lines are cut to its width. Elsewhere, a passing line is printed only if
    /// nothing was printed for 5 seconds.
    explicit Progress(std::FILE* stream);
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Prints a line that the next one replaces.
    void pass(const std::string& text);
    /// Prints a line that stays.
    void stay(const std::string& text);
    /// Prints a line that stays on standard error.
    void complain(const std::string& text);
    /// Removes the passing line.
    void clear();

private:
    std::FILE* stream_;
    std::size_t columns_;  // 0: not a terminal
    bool passing_ = false;
    std::chrono::steady_clock::time_point last_;
};

/// Returns `text`, cut to this many columns. A multibyte character is kept whole and counts as one
/// column.
std::string cut_to_columns(const std::string& text, std::size_t columns);

}  // namespace tensorpool::photos
