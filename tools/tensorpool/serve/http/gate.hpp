#pragma once

/// @file
/// Decides which requests are answered. Rejected are requests under a host name that is not this
/// server's, requests from pages of other origins, and, if there is a token, requests without it.

#include <httplib.h>

#include <optional>
#include <string>
#include <string_view>

#include "serve/http/host_names.hpp"
#include "serve/http/request_head.hpp"

namespace tensorpool::command::serve {

/// All functions may be called from any thread.
class Gate {
public:
    /// `token` is "" if none is required; `port` is the port listened on.
    Gate(HostNames names, std::string token, int port);

    /// Returns why a request is rejected regardless of its token, or nothing.
    std::optional<Refusal> refuse(const httplib::Request& request) const;
    /// Whether the request has the token, as `Authorization: Bearer` or through the cookie. Always
    /// true if no token is required.
    bool admits(const httplib::Request& request) const;
    /// Whether the text is the token. Always false if no token is required.
    bool is_token(std::string_view text) const noexcept;
    bool wants_token() const noexcept { return !token_.empty(); }

    /// Returns the value of `Set-Cookie` for a page that sent the token. The cookie holds a random
    /// number made when the server started, so the browser does not store the token, and the cookie
    /// becomes useless when the server ends.
    std::string cookie() const;

private:
    bool is_session(std::string_view cookies) const noexcept;

    HostNames names_;
    std::string token_;
    std::string session_;
    std::string cookie_name_;
};

}  // namespace tensorpool::command::serve
