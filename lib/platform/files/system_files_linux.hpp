#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

#include "platform/system_calls.hpp"

namespace tensorpool::platform {

/// Removes the text up to and including the next `separator` from the front of `text`. Returns the
/// text before the separator.
inline std::string_view take_field(std::string_view& text, char separator) noexcept {
    const std::size_t length = std::min(text.find(separator), text.size());
    const std::string_view field = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    return field;
}

/// Returns the number at the beginning of `text`, after any spaces. Returns nullopt if there is no
/// number (such as the "max" of control groups) or if it is too large for a size.
inline std::optional<std::size_t> parse_number(std::string_view text) noexcept {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    std::size_t number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec != std::errc{}) return std::nullopt;
    return number;
}

/// The kernel supports at most 1024 nodes (CONFIG_NODES_SHIFT is at most 10).
inline constexpr unsigned max_numa_nodes = 1024;

/// Returns the number of nodes in a list such as "0-1,4": one more than the highest node, which is
/// listed last. Nodes in between may be missing. Returns 1 if the text is not a list.
inline unsigned count_numa_nodes(std::string_view list) noexcept {
    const std::size_t last = list.find_last_of("-,");
    if (last != std::string_view::npos) list.remove_prefix(last + 1);
    const std::size_t highest = parse_number(list).value_or(0);
    return static_cast<unsigned>(std::min<std::size_t>(highest, max_numa_nodes - 1)) + 1;
}

/// A path in a fixed buffer; allocates nothing. A path that does not fit becomes the empty path,
/// which names no file.
class Path {
public:
    static constexpr std::size_t max_bytes = 1024;

    Path() noexcept = default;
    explicit Path(std::string_view text) noexcept { append(text); }

    void append(std::string_view text) noexcept {
        if (too_long_ || text.size() >= max_bytes - length_) return give_up();
        std::memcpy(text_ + length_, text.data(), text.size());
        shorten(length_ + text.size());
    }

    /// Appends a path with the escapes of /proc/self/mountinfo, such as \040 for a space.
    void append_unescaped(std::string_view text) noexcept {
        while (!text.empty()) {
            const bool escaped = is_escape(text);
            const char c = escaped ? octal(text.substr(1, 3)) : text[0];
            append({&c, 1});
            text.remove_prefix(escaped ? 4 : 1);
        }
    }

    /// Shortens the path to `length` bytes. REQUIRES: `length` is at most the current length.
    void shorten(std::size_t length) noexcept {
        length_ = length;
        text_[length] = '\0';
    }

    friend Path operator/(Path path, std::string_view text) noexcept {
        path.append(text);
        return path;
    }

    const char* c_str() const noexcept { return text_; }
    std::string_view view() const noexcept { return {text_, length_}; }

private:
    void give_up() noexcept {
        too_long_ = true;
        shorten(0);
    }

    static bool is_escape(std::string_view text) noexcept {
        if (text.size() < 4 || text[0] != '\\') return false;
        return text.substr(1, 3).find_first_not_of("01234567") == std::string_view::npos;
    }

    static char octal(std::string_view digits) noexcept {
        int value = 0;
        for (const char digit : digits) value = value * 8 + (digit - '0');
        return static_cast<char>(value);
    }

    std::size_t length_ = 0;
    bool too_long_ = false;
    char text_[max_bytes] = {};
};

/// Appends to a path until this object ends. Needs no second buffer, since threads may have small
/// stacks. If the longer path does not fit, `c_str` names no file, and the path stays as it is.
class LongerPath {
public:
    LongerPath(Path& path, std::string_view text) noexcept
        : path_(path), length_(path.view().size()), fits_(text.size() < Path::max_bytes - length_) {
        if (fits_) path_.append(text);
    }
    ~LongerPath() { path_.shorten(length_); }
    LongerPath(const LongerPath&) = delete;
    LongerPath& operator=(const LongerPath&) = delete;

    const char* c_str() const noexcept { return fits_ ? path_.c_str() : ""; }

private:
    Path& path_;
    std::size_t length_;
    bool fits_;
};

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

/// Gives a descriptor of the library, which exec closes, a high number, out of the way of the
/// program's own: programs expect low ones for their files, close those that they inherited, and
/// may have closed their standard streams, whose output must not go into a file of the library.
/// 64 numbers are tried below the limit or 1024, above which select(2) does not work and the
/// process's table of descriptors would grow. Returns the descriptor as it is if none is free.
inline int move_high(int file) noexcept {
    constexpr rlim_t beyond_others = 1024;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const int end = static_cast<int>(std::min(limit.rlim_cur, beyond_others));
    const int high = fcntl(file, F_DUPFD_CLOEXEC, std::max(3, end - 64));
    if (high < 0) return file;
    close(file);
    return high;
}

}  // namespace tensorpool::platform
