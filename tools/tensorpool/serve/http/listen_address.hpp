#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::command::serve {

/// The address of `--listen`: `127.0.0.1:9464`, `[::1]:9464` or `name:9464`.
struct ListenAddress {
    std::string name;        ///< as given, in lower case, without brackets
    std::uint16_t port = 0;  ///< 0: any free port
    sockaddr_storage socket_address = {};
    socklen_t socket_address_bytes = 0;
    std::string number;  ///< the numeric address

    /// Whether only this machine can reach it.
    bool is_loopback() const noexcept;
    /// Whether it means all addresses of this machine.
    bool is_any() const noexcept;
};

/// Parses an address. Throws CommandError (wrong_usage) with what was found and what was expected.
ListenAddress read_listen_address(std::string_view text);

/// Returns `name:port`, with brackets around an IPv6 address.
std::string with_port(std::string_view name, int port);

}  // namespace tensorpool::command::serve
