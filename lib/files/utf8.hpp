#pragma once

#include <string>
#include <string_view>

namespace tensorpool::files {

/// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text) noexcept;

/// In single quotes, for errors: what a terminal may obey and what is not UTF-8 escaped, and cut to
/// about 80 bytes. Files are hostile.
std::string in_quotes(std::string_view text);

}  // namespace tensorpool::files
