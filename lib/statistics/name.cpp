#include "statistics/name.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace tensorpool::statistics {

void store_name(Name& to, std::string_view name) noexcept {
    std::size_t length = std::min(name.size(), Name::bytes - 1);
    // Cut before a character of UTF-8 that does not fit whole.
    while (length != 0 && length < name.size() && (name[length] & 0xC0) == 0x80) --length;
    char text[Name::bytes] = {};
    std::memcpy(text, name.data(), length);
    for (std::size_t i = 0; i < std::size(to.words); ++i) {
        std::uint64_t word;
        std::memcpy(&word, text + i * sizeof word, sizeof word);
        to.words[i].store(word, std::memory_order_relaxed);
    }
}

void load_name(const Name& from, char* to) noexcept {
    for (std::size_t i = 0; i < std::size(from.words); ++i) {
        const std::uint64_t word = from.words[i].load(std::memory_order_relaxed);
        std::memcpy(to + i * sizeof word, &word, sizeof word);
    }
    to[Name::bytes - 1] = '\0';
}

}  // namespace tensorpool::statistics
