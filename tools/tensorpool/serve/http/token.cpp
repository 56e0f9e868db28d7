#include "serve/http/token.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "common/settings.hpp"

namespace tensorpool::command::serve {
namespace {

constexpr std::size_t max_bytes = 4096;

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view why) {
    throw CommandError(wrong_usage, fmt::format("serve: --token-file {}: {}", path.string(), why));
}

struct File {
    explicit File(const std::filesystem::path& path)
        : descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (descriptor < 0) refuse(path, std::strerror(errno));
    }
    ~File() { close(descriptor); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    int descriptor;
};

/// Checks the open file rather than the path, which may name another file by now.
void check_mode(const File& file, const std::filesystem::path& path) {
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

std::string read_all(const File& file, const std::filesystem::path& path) {
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

bool is_fit(char letter) {
    return letter > 0x20 && letter < 0x7F;
}

}  // namespace

std::string read_token_file(const std::filesystem::path& path) {
    const File file(path);
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
    if (!std::all_of(token.begin(), token.end(), is_fit)) {
        refuse(path,
               "the token contains spaces, newlines or non-ASCII characters; expected one word");
    }
    return token;
}

std::string random_secret() {
    std::array<unsigned char, 32> bytes;
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    std::string digits;
    for (const unsigned char byte : bytes) digits += fmt::format("{:02x}", byte);
    return digits;
}

bool equals_secret(std::string_view given, std::string_view secret) noexcept {
    if (secret.empty()) return false;
    // `volatile` keeps the compiler from leaving the loop at the first difference.
    volatile unsigned different = given.size() == secret.size() ? 0 : 1;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const auto letter = static_cast<unsigned char>(given[i]);
        different = different | (letter ^ static_cast<unsigned char>(secret[i % secret.size()]));
    }
    return different == 0;
}

}  // namespace tensorpool::command::serve
