#pragma once

#include <string>
#include <string_view>

namespace tensorpool::command::symbols {

/// Returns a demangled function name without its parameters and template arguments, such as
/// "std::vector<>::push_back".
std::string short_name(std::string_view function);

}  // namespace tensorpool::command::symbols
