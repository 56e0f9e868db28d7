#include "serve/http/listen_address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "common/settings.hpp"
#include "serve/http/ascii.hpp"

namespace tensorpool::command::serve {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
    throw CommandError(
        wrong_usage, fmt::format("serve: --listen {}: {}; expected an address and a port, such as "
                                 "127.0.0.1:9464 or [::1]:9464",
                                 text, why));
}

std::uint16_t read_port(std::string_view port, std::string_view text) {
    std::uint16_t number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc() || end != port.data() + port.size()) {
        refuse(text, fmt::format("'{}' is not a port from 0 to 65535", port));
    }
    return number;
}

std::string_view without_brackets(std::string_view name, std::string_view text) {
    const bool brackets = name.size() > 2 && name.front() == '[' && name.back() == ']';
    if (brackets) return name.substr(1, name.size() - 2);
    if (name.find(':') != name.npos) refuse(text, "an IPv6 address needs brackets");
    return name;
}

void resolve(ListenAddress& address, std::string_view text) {
    addrinfo hints = {};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address.port);
    const int error = getaddrinfo(address.name.c_str(), port.c_str(), &hints, &found);
    if (error != 0) refuse(text, gai_strerror(error));
    std::memcpy(&address.socket_address, found->ai_addr, found->ai_addrlen);
    address.socket_address_bytes = found->ai_addrlen;
    freeaddrinfo(found);
    char number[NI_MAXHOST];
    getnameinfo(reinterpret_cast<const sockaddr*>(&address.socket_address),
                address.socket_address_bytes, number, sizeof number, nullptr, 0, NI_NUMERICHOST);
    address.number = number;
}

/// Returns an IPv4 address, or the one that an IPv6 address maps; otherwise nothing.
std::optional<std::uint32_t> ipv4_of(const sockaddr_storage& address) {
    if (address.ss_family == AF_INET) {
        return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr);
    }
    const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(&six)) return std::nullopt;
    std::uint32_t four = 0;
    std::memcpy(&four, six.s6_addr + 12, sizeof four);
    return ntohl(four);
}

const in6_addr& ipv6_of(const sockaddr_storage& address) {
    return reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
}

}  // namespace

bool ListenAddress::is_loopback() const noexcept {
    if (const auto four = ipv4_of(socket_address)) return *four >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&ipv6_of(socket_address));
}

bool ListenAddress::is_any() const noexcept {
    if (const auto four = ipv4_of(socket_address)) return *four == 0;
    return IN6_IS_ADDR_UNSPECIFIED(&ipv6_of(socket_address));
}

ListenAddress read_listen_address(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0) refuse(text, "no address given");
    ListenAddress address;
    address.port = read_port(text.substr(colon + 1), text);
    address.name = lower(without_brackets(text.substr(0, colon), text));
    resolve(address, text);
    return address;
}

std::string with_port(std::string_view name, int port) {
    const bool six = name.find(':') != std::string_view::npos;
    return fmt::format(fmt::runtime(six ? "[{}]:{}" : "{}:{}"), name, port);
}

}  // namespace tensorpool::command::serve
