#include "statistics/segment/name.hpp"

#include <algorithm>
#include <cstring>

namespace tensorpool::statistics {

void store_text(std::span<Counter> to, std::string_view text) noexcept {
    std::size_t length = std::min(text.size(), to.size_bytes() - 1);
    // The text is cut before a UTF-8 character that does not fit as a whole.
    while (length != 0 && length < text.size() && (text[length] & 0xC0) == 0x80) --length;
    text = text.substr(0, length);
    for (Counter& counter : to) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data(), std::min(text.size(), sizeof word));
        text.remove_prefix(std::min(text.size(), sizeof word));
        counter.store(word, std::memory_order_relaxed);
    }
}

void load_text(std::span<const Counter> from, char* to) noexcept {
    for (const Counter& counter : from) {
        const std::uint64_t word = counter.load(std::memory_order_relaxed);
        std::memcpy(to, &word, sizeof word);
        to += sizeof word;
    }
    to[-1] = '\0';
}

}  // namespace tensorpool::statistics
