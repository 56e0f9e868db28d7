#include "common/html.hpp"

#include <fmt/format.h>

#include <random>

#include <nlohmann/json.hpp>

#include "page_assets.hpp"

namespace tensorpool::command {
namespace {

std::string_view escaped(const char& character) {
    if (character == '&') return "&amp;";
    if (character == '<') return "&lt;";
    if (character == '>') return "&gt;";
    if (character == '"') return "&quot;";
    if (character == '\'') return "&#39;";
    const auto code = static_cast<unsigned char>(character);
    return code < 0x20 || code == 0x7f ? "\xEF\xBF\xBD" : std::string_view(&character, 1);
}

std::string replaced(std::string_view text, std::string_view marker, std::string_view by) {
    std::string out;
    for (;;) {
        const std::size_t at = text.find(marker);
        out += text.substr(0, at);
        if (at == text.npos) return out;
        out += by;
        text.remove_prefix(at + marker.size());
    }
}

}  // namespace

std::string json_line(const nlohmann::ordered_json& json) {
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string valid_utf8(std::string_view text) {
    return nlohmann::json::parse(json_line(text)).get<std::string>();
}

std::string escape_html(std::string_view text) {
    std::string safe;
    for (const char& character : valid_utf8(text)) safe += escaped(character);
    return safe;
}

HtmlPage html_page(std::string_view name, const nlohmann::ordered_json& data) {
    // What made the data cannot guess it.
    std::random_device random;
    const std::string nonce =
        fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
    const std::string policy = fmt::format(
        "default-src 'none'; style-src 'nonce-{0}'; script-src 'nonce-{0}'; base-uri 'none'; "
        "form-action 'none'",
        nonce);
    std::string text = replaced(page::find(name)->content, "@nonce@", nonce);
    text = replaced(text, "@policy@", policy);
    // The data come last, because a name in them may be equal to a marker, and without `<`, so that
    // no text in them ends the element they stand in.
    return {replaced(text, "@data@", replaced(json_line(data), "<", "\\u003c")), policy};
}

}  // namespace tensorpool::command
