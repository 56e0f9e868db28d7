#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace tensorpool::platform {

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

}  // namespace tensorpool::platform
