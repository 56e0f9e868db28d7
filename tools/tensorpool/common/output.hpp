#pragma once

/// @file
/// Writes to standard output, standard error and files.

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "common/printable.hpp"
#include "common/settings.hpp"

namespace tensorpool::command {

/// An output file, or standard output, written piece by piece.
class WrittenFile {
public:
    /// Creates or replaces the file; "" means standard output. Throws CommandError if the file
    /// cannot be opened, or if it is `source`, the input file.
    WrittenFile(const std::string& path, const std::string& source)
        : name_(path.empty() ? "standard output" : printable(path)) {
        std::error_code ignored;
        if (!path.empty() && std::filesystem::equivalent(path, source, ignored)) {
            throw CommandError(wrong_usage,
                               fmt::format("{} is the recording itself; name another file", name_));
        }
        file_.reset(path.empty() ? stdout : std::fopen(path.c_str(), "wbe"));
        if (file_ == nullptr) fail();
    }

    /// Writes a piece. Throws CommandError if it cannot be written, as on a full disk.
    void write(std::string_view text) {
        if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) fail();
        bytes_ += text.size();
    }
    /// Flushes the file after the last piece. Throws CommandError if it cannot be written.
    void finish() {
        if (std::fflush(file_.get()) != 0) fail();
    }
    std::uint64_t bytes() const noexcept { return bytes_; }  ///< written so far

private:
    struct Close {
        void operator()(std::FILE* file) const noexcept {
            if (file != stdout) std::fclose(file);
        }
    };
    [[noreturn]] void fail() const {
        throw CommandError(finding,
                           fmt::format("{} cannot be written: {}", name_, std::strerror(errno)));
    }

    std::string name_;
    std::uint64_t bytes_ = 0;
    std::unique_ptr<std::FILE, Close> file_;
};

/// Prints `line` and a newline, and flushes. Throws CommandError if standard output cannot be
/// written.
inline void print_line(std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fputc('\n', stdout);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
    throw CommandError(finding, std::string("standard output cannot be written: ") +
                                    std::strerror(errno) + "; write to a file on another disk");
}

/// Prints a text that ends with a newline like `print_line`.
inline void print_text(std::string_view text) {
    print_line(text.substr(0, text.size() - 1));
}

/// Prints `line` and a newline to standard error. Does nothing if it cannot be written.
inline void print_error(std::string_view line) noexcept {
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputc('\n', stderr);
}

/// Writes a whole file, as WrittenFile does.
inline void write_file(const std::string& path, const std::string& source, std::string_view text) {
    WrittenFile file(path, source);
    file.write(text);
    file.finish();
}

}  // namespace tensorpool::command
