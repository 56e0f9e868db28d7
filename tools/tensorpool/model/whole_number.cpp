#include "model/whole_number.hpp"

namespace tensorpool::command::model {

std::string whole_number(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3;) {
        at -= 3;
        text.insert(at, 1, ',');
    }
    return text;
}

std::string whole_number(std::int64_t number) {
    const auto bits = static_cast<std::uint64_t>(number);
    return number < 0 ? '-' + whole_number(0 - bits) : whole_number(bits);
}

std::string counted(std::uint64_t number, std::string_view thing) {
    return whole_number(number) + ' ' + std::string(thing) + (number == 1 ? "" : "s");
}

}  // namespace tensorpool::command::model
