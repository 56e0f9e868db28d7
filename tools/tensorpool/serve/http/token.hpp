#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tensorpool::command::serve {

inline constexpr std::size_t min_token_letters = 16;

/// The token in a file: its one line. Throws CommandError, of wrong usage, where the file is none,
/// may be read or written by people whom it was not meant for, or holds no fit token.
std::string read_token_file(const std::filesystem::path& path);

/// 32 bytes of the system's random numbers, in hexadecimal digits. Throws std::system_error.
std::string random_secret();

/// Takes as long for any `given` of the same length: the time tells nothing of `secret`.
bool equals_secret(std::string_view given, std::string_view secret) noexcept;

}  // namespace tensorpool::command::serve
