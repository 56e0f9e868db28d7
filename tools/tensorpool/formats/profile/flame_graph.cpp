#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/html.hpp"
#include "formats/profile/flame_graph_page.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command::profile {
namespace {

void replace(std::string& page, std::string_view marker, std::string_view text) {
    page.replace(page.find(marker), marker.size(), text);
}

/// Returns JSON without `<`, so that no text in it ends the element it stands in.
std::string in_html(const nlohmann::ordered_json& json) {
    std::string escaped;
    for (const char character : json_line(json)) {
        if (character == '<') {
            escaped += "\\u003c";
        } else {
            escaped += character;
        }
    }
    return escaped;
}

}  // namespace

std::string flame_graph_policy() {
    return fmt::format(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; "
        "form-action 'none'",
        base64_of_hex(flame_graph_style_sha256()), base64_of_hex(flame_graph_script_sha256()));
}

std::string to_flame_graph(const NamedProfile& named, const nlohmann::ordered_json& before) {
    std::string page(flame_graph_page());
    replace(page, "{policy}", flame_graph_policy());
    // The data come last, because a name in them may be equal to a marker.
    replace(page, "{data}",
            in_html({{"now", to_json(named)},
                     {"before", before},
                     {"value", std::string(name_of(named.value))}}));
    return page;
}

}  // namespace tensorpool::command::profile
