#include "serve/http/gate.hpp"

#include <fmt/format.h>

#include <utility>

#include "serve/http/ascii.hpp"
#include "serve/http/token.hpp"

namespace tensorpool::command::serve {
namespace {

constexpr Refusal wrong_host{
    403,
    "not a name of this server; use the address given to --listen, or give this name to --listen"};
constexpr Refusal wrong_origin{403, "pages of other origins are not served"};

/// Whether the browser says that a page of another site made the request, which it does even
/// without `Origin`. A link from another site may lead to the page itself, which is the same for
/// all users.
bool is_from_elsewhere(const httplib::Request& request) {
    const std::string site = request.get_header_value("Sec-Fetch-Site");
    if (site.empty() || site == "same-origin" || site == "none") return false;
    return request.path != "/" || request.get_header_value("Sec-Fetch-Mode") != "navigate";
}

bool is_of_this_origin(const httplib::Request& request) {
    if (!request.has_header("Origin")) return true;
    return equal_letters(request.get_header_value("Origin"),
                         "http://" + request.get_header_value("Host"));
}

}  // namespace

Gate::Gate(HostNames names, std::string token, int port)
    : names_(std::move(names)),
      token_(std::move(token)),
      session_(random_secret()),
      // Cookies are shared by all ports of a host, so two servers on one machine need different
      // names.
      cookie_name_(fmt::format("tensorpool_{}", port)) {}

std::optional<Refusal> Gate::refuse(const httplib::Request& request) const {
    if (!names_.contain(request.get_header_value("Host"))) return wrong_host;
    if (is_from_elsewhere(request) || !is_of_this_origin(request)) return wrong_origin;
    return std::nullopt;
}

bool Gate::admits(const httplib::Request& request) const {
    if (!wants_token()) return true;
    constexpr std::string_view scheme = "Bearer ";
    const std::string authorization = request.get_header_value("Authorization");
    const std::string_view given = authorization;
    if (equal_letters(given.substr(0, scheme.size()), scheme)) {
        return is_token(trimmed(given.substr(scheme.size())));
    }
    return is_session(request.get_header_value("Cookie"));
}

bool Gate::is_token(std::string_view text) const noexcept {
    return equals_secret(text, token_);
}

bool Gate::is_session(std::string_view cookies) const noexcept {
    bool found = false;
    while (!cookies.empty()) {
        const std::size_t end = std::min(cookies.find(';'), cookies.size());
        const std::string_view cookie = trimmed(cookies.substr(0, end));
        cookies.remove_prefix(std::min(end + 1, cookies.size()));
        const std::size_t sign = cookie.find('=');
        if (sign == cookie.npos || cookie.substr(0, sign) != cookie_name_) continue;
        found |= equals_secret(cookie.substr(sign + 1), session_);
    }
    return found;
}

std::string Gate::cookie() const {
    return fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", cookie_name_, session_);
}

}  // namespace tensorpool::command::serve
