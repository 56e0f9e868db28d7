#pragma once

/// @file
/// Writes to standard output, standard error and files.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace tensorpool::command {

/// Prints `line` and a newline, and flushes. Throws CommandError if standard output cannot be
/// written.
void print_line(std::string_view line);

/// Prints a text that ends with a newline like `print_line`.
void print_text(std::string_view text);

/// Prints `line` and a newline to standard error. Does nothing if it cannot be written.
void print_error(std::string_view line) noexcept;

/// An output file, or standard output, written piece by piece.
class WrittenFile {
public:
    /// Creates or replaces the file; "" means standard output. Throws CommandError if the file
    /// cannot be opened, or if it is `source`, the input file.
    WrittenFile(const std::string& path, const std::string& source);

    /// Writes a piece. Throws CommandError if it cannot be written, as on a full disk.
    void write(std::string_view text);
    /// Flushes the file after the last piece. Throws CommandError if it cannot be written.
    void finish();
    std::uint64_t bytes() const noexcept { return bytes_; }  ///< written so far

private:
    struct Close {
        void operator()(std::FILE* file) const noexcept {
            if (file != stdout) std::fclose(file);
        }
    };
    [[noreturn]] void fail() const;

    std::string name_;
    std::uint64_t bytes_ = 0;
    std::unique_ptr<std::FILE, Close> file_;
};

/// Writes a whole file, as WrittenFile does.
void write_file(const std::string& path, const std::string& source, std::string_view text);

}  // namespace tensorpool::command
