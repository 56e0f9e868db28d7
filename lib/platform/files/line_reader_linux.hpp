#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string_view>

#include "platform/system_calls.hpp"

namespace tensorpool::platform {

/// Reads a text file line by line through a fixed buffer of `buffer_bytes` bytes. Allocates
/// nothing, however long the file is. The rest of a line that is longer than the buffer is skipped.
template <std::size_t buffer_bytes>
class LineReaderWith {
public:
    static constexpr std::size_t longest_line = buffer_bytes;

    explicit LineReaderWith(const char* path) noexcept
        : file_(::open(path, O_RDONLY | O_CLOEXEC)) {}
    ~LineReaderWith() {
        if (file_ >= 0) ::close(file_);
    }
    LineReaderWith(const LineReaderWith&) = delete;
    LineReaderWith& operator=(const LineReaderWith&) = delete;

    /// Sets `line` to the next line without its newline; it is valid until the next call. Returns
    /// false at the end of the file, and at once if the file cannot be read.
    bool next(std::string_view& line) noexcept {
        bool continues_line;
        do {
            continues_line = cut_;
            if (!next_piece(line)) return false;
        } while (continues_line);
        return true;
    }

private:
    /// Sets `piece` to the text before the next newline, or to as much of it as fits in the buffer.
    bool next_piece(std::string_view& piece) noexcept {
        const char* newline = find_newline();
        while (newline == nullptr && fill()) newline = find_newline();
        if (begin_ == end_) return false;
        cut_ = newline == nullptr;
        const std::size_t piece_end = cut_ ? end_ : static_cast<std::size_t>(newline - buffer_);
        piece = {buffer_ + begin_, piece_end - begin_};
        begin_ = cut_ ? end_ : piece_end + 1;
        return true;
    }

    const char* find_newline() const noexcept {
        return static_cast<const char*>(std::memchr(buffer_ + begin_, '\n', end_ - begin_));
    }

    /// Reads more behind the unread text. Returns false if the buffer is full or the file ends.
    bool fill() noexcept {
        std::memmove(buffer_, buffer_ + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
        if (end_ == longest_line) return false;
        const ssize_t got = read_some(buffer_ + end_, longest_line - end_);
        if (got <= 0) return false;
        end_ += static_cast<std::size_t>(got);
        return true;
    }

    ssize_t read_some(char* to, std::size_t bytes) const noexcept {
        ssize_t got;
        do {
            got = ::read(file_, to, bytes);
        } while (got < 0 && errno == EINTR);
        return got;
    }

    SystemCalls system_calls_;  // for as long as the file is read
    int file_;
    bool cut_ = false;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    char buffer_[longest_line];
};

using LineReader = LineReaderWith<2048>;
/// For files whose lines are short, on threads whose stacks may be small.
using ShortLineReader = LineReaderWith<256>;

}  // namespace tensorpool::platform
