#pragma once

/// @file
/// The arguments of `tensorpool serve`, and the decision which requests are answered. Rejected are
/// requests under a host name that is not this server's, requests from pages of other origins, and,
/// if there is a token, requests without it.

#include <filesystem>
#include <vector>

#include "serve/http/messages.hpp"

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

/// Returns 32 bytes from the system's random generator as hexadecimal digits.
std::string random_secret();

/// Compares in a time that depends only on the length of `given`, so that it reveals nothing about
/// `secret`.
bool equals_secret(std::string_view given, std::string_view secret) noexcept;

/// All functions may be called from any thread.
class Gate {
public:
    /// `token` is "" if none is required; `port` is the port listened on.
    Gate(const ListenAddress& address, std::string token, int port);

    /// Throws Refusal if a request is rejected regardless of its token.
    void check(const Request& request) const;
    /// Whether the request has the token, as `Authorization: Bearer` or through the cookie. Always
    /// true if no token is required.
    bool admits(const Request& request) const;
    /// Whether the text is the token. Always false if no token is required.
    bool is_token(std::string_view text) const noexcept;
    bool wants_token() const noexcept { return !token_.empty(); }

    /// Returns the value of `Set-Cookie` for a page that sent the token. The cookie holds a random
    /// number made when the server started, so the browser does not store the token, and the cookie
    /// becomes useless when the server ends.
    std::string cookie() const;

private:
    bool has_name(std::string_view host) const;
    bool is_session(std::string_view cookies) const noexcept;

    std::vector<std::string> names_;  ///< the host names under which the server answers
    bool any_number_;                 ///< any numeric address: these cannot be rebound
    std::string token_;
    std::string session_;
    std::string cookie_name_;
};

}  // namespace tensorpool::command::serve
