#pragma once

/// @file
/// Lines that stay and, on a terminal, one at the bottom that changes.

#include <chrono>
#include <cstdio>
#include <string>

namespace tensorpool::photos {

/// Writes to one stream, from one thread.
class Progress {
public:
    /// On a terminal as wide as the terminal says; elsewhere a passing line is printed only when
    /// nothing was for 5 seconds.
    explicit Progress(std::FILE* stream);
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// A line that the next one replaces, cut to the terminal's width.
    void pass(const std::string& text);
    /// A line that stays.
    void stay(const std::string& text);
    /// A line that stays, on standard error.
    void complain(const std::string& text);
    /// Takes the passing line away.
    void clear();

private:
    std::FILE* stream_;
    std::size_t columns_;  // 0: no terminal
    bool passing_ = false;
    std::chrono::steady_clock::time_point last_;
};

/// `text`, or the beginning of it that fits into so many columns; a character of several bytes
/// stays whole and counts as one column.
std::string cut_to_columns(const std::string& text, std::size_t columns);

}  // namespace tensorpool::photos
