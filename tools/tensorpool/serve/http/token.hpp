#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tensorpool::command::serve {

inline constexpr std::size_t min_token_letters = 16;

/// Reads the token in a file, which is its only line. Throws CommandError (wrong_usage) if the path
/// is not a regular file, if other users may access it, or if it contains no valid token.
std::string read_token_file(const std::filesystem::path& path);

/// Returns 32 bytes from the system's random generator as hexadecimal digits. Throws
/// std::system_error.
std::string random_secret();

/// Compares in a time that depends only on the length of `given`, so that it reveals nothing about
/// `secret`.
bool equals_secret(std::string_view given, std::string_view secret) noexcept;

}  // namespace tensorpool::command::serve
