#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::command::serve {

/// Where to listen, as `--listen` says it: `127.0.0.1:9464`, `[::1]:9464` or `name:9464`.
struct ListenAddress {
    std::string name;        ///< as given, in lower case, without brackets
    std::uint16_t port = 0;  ///< 0: whichever is free
    sockaddr_storage socket_address = {};
    socklen_t socket_address_bytes = 0;
    std::string number;  ///< the address that the name stands for

    /// Whether only this machine reaches it.
    bool is_loopback() const noexcept;
    /// Whether it stands for all addresses of this machine.
    bool is_any() const noexcept;
};

/// Throws CommandError, of wrong usage: what was found and what is expected.
ListenAddress read_listen_address(std::string_view text);

/// `name:port`, with brackets where the name is an address of IPv6.
std::string with_port(std::string_view name, int port);

}  // namespace tensorpool::command::serve
