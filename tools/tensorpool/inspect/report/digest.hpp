#pragma once

#include <string>
#include <string_view>

namespace tensorpool::command::inspect {

/// The bytes that pairs of hexadecimal digits stand for, in base 64 with padding, as policies of
/// pages want digests.
std::string base64_of_hex(std::string_view hex);

}  // namespace tensorpool::command::inspect
