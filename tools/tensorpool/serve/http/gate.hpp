#pragma once

/// @file
/// Who gets figures: nobody by a name that is not this server's, no page of another origin, and,
/// where there is a token, nobody without it.

#include <httplib.h>

#include <optional>
#include <string>
#include <string_view>

#include "serve/http/host_names.hpp"
#include "serve/http/request_head.hpp"

namespace tensorpool::command::serve {

/// Any thread.
class Gate {
public:
    /// `token` is "" where none is wanted; `port` is the one listened on.
    Gate(HostNames names, std::string token, int port);

    /// Why a request gets nothing, whoever sends it.
    std::optional<Refusal> refuse(const httplib::Request& request) const;
    /// Whether it comes with the token, as `Authorization: Bearer` or by the cookie; always where
    /// none is wanted.
    bool admits(const httplib::Request& request) const;
    /// Whether this is the token; never where none is wanted.
    bool is_token(std::string_view text) const noexcept;
    bool wants_token() const noexcept { return !token_.empty(); }

    /// What `Set-Cookie` is for a page that sent the token. Its value is a random number that this
    /// server made when it began: the token itself is not kept by the browser, and what is kept is
    /// worth nothing once the server has ended.
    std::string cookie() const;

private:
    bool is_session(std::string_view cookies) const noexcept;

    HostNames names_;
    std::string token_;
    std::string session_;
    std::string cookie_name_;
};

}  // namespace tensorpool::command::serve
