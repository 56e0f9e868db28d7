#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace tensorpool::command::model {

/// "151,936", "-3".
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

/// "1 layer", "151,936 layers".
std::string counted(std::uint64_t number, std::string_view thing);

}  // namespace tensorpool::command::model
