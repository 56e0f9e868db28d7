#include "base/fail.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace tensorpool::base {
namespace {

void write_line(const char* format, std::va_list arguments) noexcept {
    char line[512];
    std::vsnprintf(line, sizeof line, format, arguments);
    std::fprintf(stderr, "tensorpool: %s\n", line);
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

}  // namespace tensorpool::base
