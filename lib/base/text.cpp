#include "base/text.hpp"

#include <algorithm>
#include <cstdarg>

namespace tensorpool::base {

BytesText::BytesText(std::uint64_t bytes) noexcept {
    static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned unit = 0;
    std::uint64_t whole = bytes;
    std::uint64_t rest = 0;
    while (whole >= 1024) {
        rest = whole % 1024;
        whole /= 1024;
        ++unit;
    }
    // One decimal, rounded down: a printed value is never larger than the real one.
    const auto tenths = static_cast<unsigned>(rest * 10 / 1024);
    const auto shown = static_cast<unsigned>(whole);
    if (unit == 0 || tenths == 0) {
        std::snprintf(text_, sizeof text_, "%u %s", shown, units[unit]);
    } else {
        std::snprintf(text_, sizeof text_, "%u.%u %s", shown, tenths, units[unit]);
    }
}

void FixedText::add(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    const int wanted = std::vsnprintf(text_ + length_, bytes_ - length_, format, arguments);
    va_end(arguments);
    length_ += std::min(static_cast<std::size_t>(std::max(wanted, 0)), bytes_ - length_ - 1);
}

}  // namespace tensorpool::base
