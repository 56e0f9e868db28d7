#pragma once

#include <string>
#include <string_view>

namespace tensorpool::command::inspect {

/// Converts bytes from hexadecimal digits to base 64 with padding, the form of digests in a
/// Content-Security-Policy.
std::string base64_of_hex(std::string_view hex);

}  // namespace tensorpool::command::inspect
