#pragma once

#include <cstdint>
#include <string>

namespace tensorpool::command::run {

/// Formats a number as "1,234,567".
inline std::string with_commas(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t left = text.size(); left > 3;) text.insert(left -= 3, 1, ',');
    return text;
}

}  // namespace tensorpool::command::run
