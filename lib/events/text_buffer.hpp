#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace tensorpool::events {

/// Text in a buffer of the caller. What does not fit is left out; the text always ends with a null.
/// Allocates nothing.
class TextBuffer {
public:
    /// REQUIRES: `bytes` is not 0.
    TextBuffer(char* text, std::size_t bytes) noexcept : text_(text), bytes_(bytes) {
        text_[0] = '\0';
    }

#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    void
    add(const char* format, ...) noexcept {
        std::va_list arguments;
        va_start(arguments, format);
        const int wanted = std::vsnprintf(text_ + length_, bytes_ - length_, format, arguments);
        va_end(arguments);
        length_ += std::min(static_cast<std::size_t>(std::max(wanted, 0)), bytes_ - length_ - 1);
    }

    std::size_t length() const noexcept {
        return length_;
    }

private:
    char* text_;
    std::size_t bytes_;
    std::size_t length_ = 0;
};

}  // namespace tensorpool::events
