#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace tensorpool::base {

/// A size for people, such as "64 B", "1.5 MiB", in a buffer of its own: nothing is allocated.
class BytesText {
public:
    explicit BytesText(std::uint64_t bytes) noexcept;
    const char* c_str() const noexcept { return text_; }

private:
    char text_[24];
};

/// Text into a buffer of the caller's, one piece after the other, cut where the buffer ends and
/// always ended by a zero: nothing is allocated.
class FixedText {
public:
    /// REQUIRES: `bytes` is not 0.
    FixedText(char* text, std::size_t bytes) noexcept : at_(text), left_(bytes) { *text = '\0'; }

    /// As printf.
    void add(const char* format, ...) noexcept;

private:
    char* at_;
    std::size_t left_;
};

}  // namespace tensorpool::base
