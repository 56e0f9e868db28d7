#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// Stores as many bytes of a text as fit before a final zero. The text is cut before a UTF-8
/// character that does not fit as a whole.
void store_text(std::span<Counter> to, std::string_view text) noexcept;
/// Loads a text into `to`, which has room for all bytes of `from`. The result always ends with a
/// zero, even if the words were overwritten.
void load_text(std::span<const Counter> from, char* to) noexcept;

inline void store_name(Name& to, std::string_view name) noexcept {
    store_text(to.words, name);
}
inline void load_name(const Name& from, char* to) noexcept {
    load_text(from.words, to);
}

}  // namespace tensorpool::statistics
