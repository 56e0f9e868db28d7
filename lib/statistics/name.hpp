#pragma once

#include <string_view>

#include "statistics/segment_layout.hpp"

namespace tensorpool::statistics {

/// The bytes of a name that fit, cut before a character of UTF-8 that does not fit whole.
void store_name(Name& to, std::string_view name) noexcept;
/// Into `to`, which has room for Name::bytes. Ends with a zero whatever is there.
void load_name(const Name& from, char* to) noexcept;

}  // namespace tensorpool::statistics
