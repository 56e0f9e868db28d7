#include "serve/http/host_names.hpp"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "serve/http/ascii.hpp"

namespace tensorpool::command::serve {
namespace {

bool is_number(const std::string& name) {
    in6_addr address;
    return inet_pton(AF_INET, name.c_str(), &address) == 1 ||
           inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

std::string name_of_this_machine() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? lower(name) : std::string();
}

bool is_port(std::string_view text) {
    return text.size() <= 5 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns the name without port and brackets, in lower case, or nothing if `host` is malformed.
std::optional<std::string> name_in(std::string_view host) {
    const bool brackets = !host.empty() && host.front() == '[';
    const std::size_t end = brackets ? host.find(']') : host.find(':');
    const std::size_t after = brackets && end != host.npos ? end + 1 : std::min(end, host.size());
    if (brackets && end == host.npos) return std::nullopt;
    const std::string_view rest = host.substr(after);
    if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return std::nullopt;
    return lower(brackets ? host.substr(1, end - 1) : host.substr(0, after));
}

}  // namespace

HostNames::HostNames(const ListenAddress& address)
    : names_{address.name, address.number}, any_number_(address.is_any()) {
    if (address.is_loopback() || address.is_any()) {
        names_.insert(names_.end(), {"localhost", "127.0.0.1", "::1"});
    }
    if (!address.is_loopback()) names_.push_back(name_of_this_machine());
}

bool HostNames::contain(std::string_view host) const {
    const std::optional<std::string> name = name_in(host);
    if (!name || name->empty()) return false;
    if (any_number_ && is_number(*name)) return true;
    return std::find(names_.begin(), names_.end(), *name) != names_.end();
}

}  // namespace tensorpool::command::serve
