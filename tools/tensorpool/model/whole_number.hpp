#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorpool::command::model {

/// Returns the number with commas between thousands, such as "151,936" or "-3".
std::string whole_number(std::uint64_t number);
std::string whole_number(std::int64_t number);
template <std::integral Number>
std::string whole_number(Number number) {
    if constexpr (std::signed_integral<Number>) {
        return whole_number(static_cast<std::int64_t>(number));
    } else {
        return whole_number(static_cast<std::uint64_t>(number));
    }
}

/// Returns a number with its noun, such as "1 layer" or "151,936 layers".
std::string counted(std::uint64_t number, std::string_view thing);

}  // namespace tensorpool::command::model
