#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tensorpool::command::serve {

/// The address of `--listen`: `127.0.0.1:9464`, `[::1]:9464` or `name:9464`.
struct ListenAddress {
    std::string name;          ///< as given, in lower case, without brackets
    std::uint16_t port = 0;    ///< 0: any free port
    std::string number;        ///< the numeric address
    bool is_loopback = false;  ///< only this machine can reach it
    bool is_any = false;       ///< it means all addresses of this machine
};

/// Parses an address. Throws CommandError (wrong_usage) with what was found and what was expected.
ListenAddress read_listen_address(std::string_view text);

/// Returns `name:port`, with brackets around an IPv6 address.
std::string with_port(std::string_view name, int port);

inline constexpr std::size_t min_token_letters = 16;

/// Reads the token in the file of `--token-file`, which is its only line. Throws CommandError
/// (wrong_usage) if the path is not a regular file, if other users may access it, or if it contains
/// no valid token.
std::string read_token_file(const std::filesystem::path& path);

}  // namespace tensorpool::command::serve
