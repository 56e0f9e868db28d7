#pragma once

/// @file
/// Decides which requests are answered. Rejected are requests under a host name that is not this
/// server's, requests from pages of other origins, and, if there is a token, requests without it.

#include <string>
#include <string_view>
#include <vector>

#include "serve/arguments.hpp"
#include "serve/http/messages.hpp"

namespace tensorpool::command::serve {

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
