#include "common/html_page.hpp"

#include <fmt/format.h>

#include <random>

#include "page_assets.hpp"

namespace tensorpool::command {
namespace {

void replace(std::string& text, std::string_view marker, std::string_view by) {
    for (std::size_t at = 0; (at = text.find(marker, at)) != std::string::npos; at += by.size()) {
        text.replace(at, marker.size(), by);
    }
}

/// Returns JSON without `<`, so that no text in it ends the element it stands in.
std::string in_html(const nlohmann::ordered_json& json) {
    std::string text = json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    replace(text, "<", "\\u003c");
    return text;
}

}  // namespace

HtmlPage html_page(std::string_view name, const nlohmann::ordered_json& data) {
    // What made the data cannot guess it.
    std::random_device random;
    const std::string nonce =
        fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
    HtmlPage page{std::string(page::find(name)->content),
                  fmt::format("default-src 'none'; style-src 'nonce-{0}'; script-src 'nonce-{0}'; "
                              "base-uri 'none'; form-action 'none'",
                              nonce)};
    replace(page.text, "@nonce@", nonce);
    replace(page.text, "@policy@", page.policy);
    // The data come last, because a name in them may be equal to a marker.
    page.text.replace(page.text.find("@data@"), 6, in_html(data));
    return page;
}

}  // namespace tensorpool::command
