#pragma once

/// @file
/// Connections, with limits of time and size, on Boost.Asio, and the decision which requests are
/// answered. Rejected are requests under a host name that is not this server's, requests from pages
/// of other origins, and, if there is a token, requests without it.

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>

#include "common/posix.hpp"
#include "common/settings.hpp"
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

inline constexpr std::size_t min_token_letters = 16;

/// Whether the browser says that a page of another site made the request, which it does even
/// without `Origin`. A link from another site may lead to the page itself, which is the same for
/// all users.
inline bool is_from_elsewhere(const Request& request) {
    const std::string site = request.header("sec-fetch-site");
    if (site.empty() || site == "same-origin" || site == "none") return false;
    return request.path != "/" || request.header("sec-fetch-mode") != "navigate";
}

inline bool is_of_this_origin(const Request& request) {
    const std::string origin = lower(request.header("origin"));
    return origin.empty() || origin == "http://" + lower(request.header("host"));
}

inline bool is_number(const std::string& name) {
    in6_addr address;
    return inet_pton(AF_INET, name.c_str(), &address) == 1 ||
           inet_pton(AF_INET6, name.c_str(), &address) == 1;
}

inline std::string name_of_this_machine() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? lower(name) : std::string();
}

inline bool is_port(std::string_view text) {
    return text.size() <= 5 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns the name without port and brackets, in lower case, or nothing if `host` is malformed.
inline std::optional<std::string> name_in(std::string_view host) {
    const bool brackets = !host.empty() && host.front() == '[';
    const std::size_t end = brackets ? host.find(']') : host.find(':');
    const std::size_t after = brackets && end != host.npos ? end + 1 : std::min(end, host.size());
    if (brackets && end == host.npos) return std::nullopt;
    const std::string_view rest = host.substr(after);
    if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return std::nullopt;
    return lower(brackets ? host.substr(1, end - 1) : host.substr(0, after));
}

/// Returns 32 bytes from the system's random generator as hexadecimal digits.
inline std::string random_secret() {
    std::random_device random;
    std::string digits;
    for (int i = 0; i < 8; ++i) digits += fmt::format("{:08x}", random());
    return digits;
}

/// Compares in a time that depends only on the length of `given`, so that it reveals nothing about
/// `secret`.
inline bool equals_secret(std::string_view given, std::string_view secret) noexcept {
    if (secret.empty()) return false;
    // `volatile` keeps the compiler from leaving the loop at the first difference.
    volatile unsigned different = given.size() == secret.size() ? 0 : 1;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const auto letter = static_cast<unsigned char>(given[i]);
        different = different | (letter ^ static_cast<unsigned char>(secret[i % secret.size()]));
    }
    return different == 0;
}

/// All functions may be called from any thread.
class Gate {
public:
    /// `token` is "" if none is required; `port` is the port listened on.
    Gate(const ListenAddress& address, std::string token, int port)
        : names_{address.name, address.number},
          any_number_(address.is_any),
          token_(std::move(token)),
          session_(random_secret()),
          // Cookies are shared by all ports of a host, so two servers on one machine need different
          // names.
          cookie_name_(fmt::format("tensorpool_{}", port)) {
        if (address.is_loopback || address.is_any) {
            names_.insert(names_.end(), {"localhost", "127.0.0.1", "::1"});
        }
        if (!address.is_loopback) names_.push_back(name_of_this_machine());
    }

    /// Throws Refusal if a request is rejected regardless of its token.
    // A malicious page can make the browser resolve its own name to this server's address ("DNS
    // rebinding"). Its requests then carry that name.
    void check(const Request& request) const {
        if (!has_name(request.header("host"))) {
            throw Refusal(
                403,
                "not a name of this server; use the address given to --listen, or give this "
                "name to --listen");
        }
        if (is_from_elsewhere(request) || !is_of_this_origin(request)) {
            throw Refusal(403, "pages of other origins are not served");
        }
    }
    /// Whether the request has the token, as `Authorization: Bearer` or through the cookie. Always
    /// true if no token is required.
    bool admits(const Request& request) const {
        if (!wants_token()) return true;
        constexpr std::string_view scheme = "bearer ";
        const std::string given = request.header("authorization");
        if (lower(given.substr(0, scheme.size())) == scheme) {
            return is_token(trimmed(std::string_view(given).substr(scheme.size())));
        }
        return is_session(request.header("cookie"));
    }
    /// Whether the text is the token. Always false if no token is required.
    bool is_token(std::string_view text) const noexcept { return equals_secret(text, token_); }
    bool wants_token() const noexcept { return !token_.empty(); }

    /// Returns the value of `Set-Cookie` for a page that sent the token. The cookie holds a random
    /// number made when the server started, so the browser does not store the token, and the cookie
    /// becomes useless when the server ends.
    std::string cookie() const {
        return fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", cookie_name_, session_);
    }

private:
    /// Ports are ignored, because a tunnel may use another.
    bool has_name(std::string_view host) const {
        const std::optional<std::string> name = name_in(host);
        if (!name || name->empty()) return false;
        if (any_number_ && is_number(*name)) return true;
        return std::find(names_.begin(), names_.end(), *name) != names_.end();
    }
    bool is_session(std::string_view cookies) const noexcept {
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

    std::vector<std::string> names_;  ///< the host names under which the server answers
    bool any_number_;                 ///< any numeric address: these cannot be rebound
    std::string token_;
    std::string session_;
    std::string cookie_name_;
};

[[noreturn]] inline void refuse(const std::filesystem::path& path, std::string_view why) {
    throw CommandError(wrong_usage, fmt::format("serve: --token-file {}: {}", path.string(), why));
}

inline constexpr std::size_t max_bytes = 4096;

/// Checks the open file rather than the path, which may name another file by now.
inline void check_mode(const Descriptor& file, const std::filesystem::path& path) {
    struct stat status = {};
    if (fstat(file.number(), &status) != 0) refuse(path, std::strerror(errno));
    // Any access by others, and writing by the group.
    const unsigned mode = status.st_mode & 07777U;
    if ((mode & 0027U) != 0) {
        refuse(path, fmt::format(
                         "its mode is {:04o}, so other users may read or change it; expected 0600: "
                         "chmod 600 {}",
                         mode, path.string()));
    }
}

inline std::string read_all(const Descriptor& file, const std::filesystem::path& path) {
    std::array<char, max_bytes + 1> bytes;
    std::size_t count = 0;
    while (count < bytes.size()) {
        const ssize_t part = read(file.number(), bytes.data() + count, bytes.size() - count);
        if (part < 0) refuse(path, std::strerror(errno));
        if (part == 0) return std::string(bytes.data(), count);
        count += static_cast<std::size_t>(part);
    }
    refuse(path, fmt::format("larger than {} bytes; expected one line", max_bytes));
}

/// Parses an address. Throws CommandError (wrong_usage) with what was found and what was expected.
ListenAddress read_listen_address(std::string_view text);

/// Returns `name:port`, with brackets around an IPv6 address.
inline std::string with_port(std::string_view name, int port) {
    const bool six = name.find(':') != std::string_view::npos;
    return fmt::format(fmt::runtime(six ? "[{}]:{}" : "{}:{}"), name, port);
}

/// Reads the token in the file of `--token-file`, which is its only line. Throws CommandError
/// (wrong_usage) if the path is not a regular file, if other users may access it, or if it contains
/// no valid token.
inline std::string read_token_file(const std::filesystem::path& path) {
    const Descriptor file = open_regular_file(path);
    if (!file) refuse(path, errno == 0 ? "not a regular file" : std::strerror(errno));
    check_mode(file, path);
    std::string token = read_all(file, path);
    token.erase(token.find_last_not_of(" \t\r\n") + 1);
    if (token.size() < min_token_letters) {
        refuse(path,
               fmt::format(
                   "the token has {} characters; expected {} or more, for example from openssl "
                   "rand -hex 32",
                   token.size(), min_token_letters));
    }
    if (!std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7F; })) {
        refuse(path,
               "the token contains spaces, newlines or non-ASCII characters; expected one word");
    }
    return token;
}

/// One thread reads and writes all connections. A few others compute the answers, which may wait.
class HttpServer {
public:
    /// Called from several threads. May throw Refusal.
    using Answer = std::function<Response(const Request&)>;
    struct State;

    /// Listens, but does not answer before `run`. Throws CommandError if the address is in use, or
    /// is not an address of this machine.
    HttpServer(const ListenAddress& address, Answer answer, const Limits& limits = {});
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    int port() const;
    /// Answers requests until `stop` is called. Then no answer is under way.
    void run();
    /// Ends `run`, or makes it return at once. May be called from any thread.
    void stop();
    /// Sends what is new on all streams, or a comment, which keeps proxies from closing them and
    /// finds clients that have gone. May be called from any thread.
    void wake();

private:
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool::command::serve
