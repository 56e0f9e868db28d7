#pragma once

#include <string>
#include <string_view>

namespace tensorpool::files {

/// Returns whether `text` is strict UTF-8: no overlong forms, no surrogates, nothing above
/// U+10FFFF.
bool is_utf8(std::string_view text) noexcept;

/// Returns `text` in single quotes, for errors. Control characters and bytes that are not UTF-8 are
/// escaped, since files may be hostile, and the text is cut to about 80 bytes.
std::string in_quotes(std::string_view text);

}  // namespace tensorpool::files
