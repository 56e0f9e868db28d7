#pragma once

#include <string>
#include <string_view>

namespace tensorpool::command::inspect {

/// A demangled function without its parameters, and with `<>` for what is in angle brackets:
/// "std::vector<>::push_back".
std::string short_name(std::string_view function);

}  // namespace tensorpool::command::inspect
