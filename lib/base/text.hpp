#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

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

/// Appends formatted text to the caller's buffer. Text that does not fit is cut off; the buffer
/// always ends with a zero. Allocates nothing.
class FixedText {
public:
    /// REQUIRES: `bytes` is not 0.
    FixedText(char* text, std::size_t bytes) noexcept : at_(text), left_(bytes) { *text = '\0'; }

    /// Appends text formatted like printf.
    void add(const char* format, ...) noexcept;

private:
    char* at_;
    std::size_t left_;
};

}  // namespace tensorpool::base
