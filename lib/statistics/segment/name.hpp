#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// The bytes of a text that fit into the words and leave a zero at their end, cut before a
/// character of UTF-8 that does not fit whole.
void store_text(std::span<Counter> to, std::string_view text) noexcept;
/// Into `to`, which has room for all bytes of the words. Ends with a zero whatever is there.
void load_text(std::span<const Counter> from, char* to) noexcept;

inline void store_name(Name& to, std::string_view name) noexcept {
    store_text(to.words, name);
}
inline void load_name(const Name& from, char* to) noexcept {
    load_text(from.words, to);
}

}  // namespace tensorpool::statistics
