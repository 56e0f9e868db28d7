#include "formats/symbols/short_name.hpp"

namespace tensorpool::command::symbols {
namespace {

constexpr std::string_view anonymous = "(anonymous namespace)";
constexpr std::string_view any_operator = "operator";

/// Returns the number of characters at the beginning that are kept, with any brackets in them.
std::size_t plain_characters(std::string_view text) {
    if (text.starts_with(anonymous)) return anonymous.size();
    if (!text.starts_with(any_operator)) return 0;
    const std::string_view symbol = text.substr(any_operator.size());
    if (symbol.starts_with("()")) return any_operator.size() + 2;
    const std::size_t length = symbol.find_first_not_of("<>=-!&|+*/%^~[],");
    return any_operator.size() + (length == std::string_view::npos ? symbol.size() : length);
}

}  // namespace

std::string short_name(std::string_view function) {
    std::string name;
    unsigned angles = 0;
    unsigned rounds = 0;
    while (!function.empty()) {
        const bool is_outside = angles == 0 && rounds == 0;
        if (const std::size_t plain = is_outside ? plain_characters(function) : 0) {
            name += function.substr(0, plain);
            function.remove_prefix(plain);
            continue;
        }
        const char character = function.front();
        function.remove_prefix(1);
        if (character == '<' && angles++ == 0 && rounds == 0) name += "<>";
        if (character == '(') ++rounds;
        if (is_outside && character != '<' && character != '(') name += character;
        if (character == '>' && angles > 0) --angles;
        if (character == ')' && rounds > 0) --rounds;
    }
    return name;
}

}  // namespace tensorpool::command::symbols
