#include "serve/http/messages.hpp"

#include <algorithm>
#include <charconv>

#include "serve/json.hpp"

namespace tensorpool::command::serve {
namespace {

std::string value_of(const std::map<std::string, std::string>& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
}

/// Replaces %XX by a byte. An incomplete or invalid one stays as it is.
std::string decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned char byte = 0;
        const char* const digits = text.data() + i + 1;
        const bool coded = text[i] == '%' && i + 2 < text.size() &&
                           std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
        out += coded ? static_cast<char>(byte) : text[i];
        if (coded) i += 2;
    }
    return out;
}

std::string decoded_form(std::string_view text) {
    std::string spaced(text);
    std::ranges::replace(spaced, '+', ' ');
    return decoded(spaced);
}

}  // namespace

std::string Request::header(const std::string& name) const {
    return value_of(headers, name);
}

std::optional<std::uint64_t> Request::number(const std::string& parameter) const {
    const std::string text = value_of(parameters, parameter);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(number) : std::nullopt;
}

Response Refusal::response() const {
    Response response{.status = status_, .body = error_json(what())};
    if (status_ == 401) response.headers["WWW-Authenticate"] = "Bearer realm=\"tensorpool\"";
    return response;
}

void read_target(std::string_view target, Request& request) {
    const std::size_t end = std::min(target.find('?'), target.size());
    request.path = decoded(target.substr(0, end));
    request.parameters = read_parameters(target.substr(std::min(end + 1, target.size())));
}

std::map<std::string, std::string> read_parameters(std::string_view text) {
    std::map<std::string, std::string> parameters;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('&'), text.size());
        const std::string_view one = text.substr(0, end);
        const std::size_t sign = std::min(one.find('='), one.size());
        parameters.emplace(decoded_form(one.substr(0, sign)),
                           decoded_form(one.substr(std::min(sign + 1, one.size()))));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parameters;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& letter : out) {
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    return out;
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace tensorpool::command::serve
