#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>

// gcc and clang check the arguments against the format, which is the first parameter, or the second
// one (that of a member function included).
#if defined(__GNUC__)
#define TENSORPOOL_PRINTF_LIKE __attribute__((format(printf, 1, 2)))
#define TENSORPOOL_PRINTF_LIKE_2 __attribute__((format(printf, 2, 3)))
#else
#define TENSORPOOL_PRINTF_LIKE
#define TENSORPOOL_PRINTF_LIKE_2
#endif

namespace tensorpool::base {

/// Formats a size for people, such as "64 B" or "1.5 MiB". The text is stored in the object;
/// nothing is allocated.
class BytesText {
public:
    explicit BytesText(std::uint64_t bytes) noexcept;
    const char* c_str() const noexcept { return text_; }

private:
    char text_[24];
};

/// Returns the text of an enumerator, or `unknown` for a value without one.
template <std::size_t count, class Enumeration>
constexpr const char* text_of(const char* const (&texts)[count], Enumeration value,
                              const char* unknown = "?") noexcept {
    const auto index = static_cast<std::size_t>(value);
    return index < count ? texts[index] : unknown;
}

/// Returns the first bytes of a text, at most `max_bytes`, without splitting a UTF-8 character.
constexpr std::string_view cut_utf8(std::string_view text, std::size_t max_bytes) noexcept {
    if (text.size() <= max_bytes) return text;
    while (max_bytes != 0 && (text[max_bytes] & 0xC0) == 0x80) --max_bytes;
    return text.substr(0, max_bytes);
}

/// Appends formatted text to the caller's buffer. Text that does not fit is cut off; the buffer
/// always ends with a zero. Allocates nothing.
class FixedText {
public:
    /// REQUIRES: `bytes` is not 0.
    FixedText(char* text, std::size_t bytes) noexcept : text_(text), bytes_(bytes) { *text = '\0'; }

    /// Appends text formatted like printf.
    TENSORPOOL_PRINTF_LIKE_2 void add(const char* format, ...) noexcept;
    std::size_t length() const noexcept { return length_; }

private:
    char* text_;
    std::size_t bytes_;
    std::size_t length_ = 0;
};

}  // namespace tensorpool::base
