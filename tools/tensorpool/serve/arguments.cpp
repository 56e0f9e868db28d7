#include "serve/arguments.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "common/settings.hpp"
#include "serve/http/messages.hpp"

namespace tensorpool::command::serve {
namespace {

namespace asio = boost::asio;

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

asio::ip::address resolve(const std::string& name, std::string_view text) {
    using asio::ip::tcp;
    asio::io_context io;
    boost::system::error_code error;
    const auto found = tcp::resolver(io).resolve(name, "", tcp::resolver::flags(), error);
    if (error) refuse(text, error.message());
    return found.begin()->endpoint().address();
}

constexpr std::size_t max_bytes = 4096;

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view why) {
    throw CommandError(wrong_usage, fmt::format("serve: --token-file {}: {}", path.string(), why));
}

struct TokenFile {
    explicit TokenFile(const std::filesystem::path& path)
        : descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (descriptor < 0) refuse(path, std::strerror(errno));
    }
    ~TokenFile() { close(descriptor); }
    TokenFile(const TokenFile&) = delete;
    TokenFile& operator=(const TokenFile&) = delete;

    int descriptor;
};

/// Checks the open file rather than the path, which may name another file by now.
void check_mode(const TokenFile& file, const std::filesystem::path& path) {
    struct stat status = {};
    if (fstat(file.descriptor, &status) != 0) refuse(path, std::strerror(errno));
    if (!S_ISREG(status.st_mode)) refuse(path, "not a regular file");
    // Any access by others, and writing by the group.
    const unsigned mode = status.st_mode & 07777U;
    if ((mode & 0027U) != 0) {
        refuse(path, fmt::format(
                         "its mode is {:04o}, so other users may read or change it; expected 0600: "
                         "chmod 600 {}",
                         mode, path.string()));
    }
}

std::string read_all(const TokenFile& file, const std::filesystem::path& path) {
    std::array<char, max_bytes + 1> bytes;
    std::size_t count = 0;
    while (count < bytes.size()) {
        const ssize_t part = read(file.descriptor, bytes.data() + count, bytes.size() - count);
        if (part < 0) refuse(path, std::strerror(errno));
        if (part == 0) return std::string(bytes.data(), count);
        count += static_cast<std::size_t>(part);
    }
    refuse(path, fmt::format("larger than {} bytes; expected one line", max_bytes));
}

}  // namespace

ListenAddress read_listen_address(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0) refuse(text, "no address given");
    ListenAddress address;
    address.port = read_port(text.substr(colon + 1), text);
    address.name = lower(without_brackets(text.substr(0, colon), text));
    asio::ip::address number = resolve(address.name, text);
    address.number = number.to_string();
    if (number.is_v6() && number.to_v6().is_v4_mapped()) {
        number = asio::ip::make_address_v4(asio::ip::v4_mapped, number.to_v6());
    }
    address.is_loopback = number.is_loopback();
    address.is_any = number.is_unspecified();
    return address;
}

std::string with_port(std::string_view name, int port) {
    const bool six = name.find(':') != std::string_view::npos;
    return fmt::format(fmt::runtime(six ? "[{}]:{}" : "{}:{}"), name, port);
}

std::string read_token_file(const std::filesystem::path& path) {
    const TokenFile file(path);
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

}  // namespace tensorpool::command::serve
