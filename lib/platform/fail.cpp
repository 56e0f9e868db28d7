#include <algorithm>
#include <cstdarg>
#include <cstdlib>

#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

constexpr char head[] = "tensorpool: ";
constexpr std::size_t max_text_bytes = 511;

// Writes the line with a single call, so that lines of several threads do not mix.
void write_line(const char* format, std::va_list arguments) noexcept {
    char line[sizeof head + max_text_bytes + 1];
    const std::size_t begin = sizeof head - 1;
    std::copy_n(head, begin, line);
    const int wanted = std::vsnprintf(line + begin, max_text_bytes + 1, format, arguments);
    const std::size_t text =
        std::min(static_cast<std::size_t>(std::max(wanted, 0)), max_text_bytes);
    // A value from the environment may contain anything. The line stays one line.
    std::replace_if(
        line + begin, line + begin + text,
        [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; }, '?');
    line[begin + text] = '\n';
    write_to_stderr(line, begin + text + 1);
}

}  // namespace

void fail(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
    std::abort();
}

void say(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}

}  // namespace tensorpool::platform
