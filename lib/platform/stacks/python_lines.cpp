#include "platform/stacks/python_layout.hpp"

namespace tensorpool::platform::python {
namespace {

/// A signed number in pieces of 6 bits, lowest first; the lowest bit of all is the sign.
std::int64_t signed_number(const unsigned char* at, const unsigned char* end) noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; at != end && shift < 60; shift += 6) {
        value |= std::uint64_t{*at & 63U} << shift;
        if ((*at++ & 64U) == 0) break;
    }
    const auto magnitude = static_cast<std::int64_t>(value >> 1);
    return (value & 1) != 0 ? -magnitude : magnitude;
}

}  // namespace

// An entry begins with a byte whose highest bit is set: 4 bits of kind, 3 bits of length.
std::uint32_t line_in_table(const unsigned char* table, std::size_t bytes, std::uint32_t first_line,
                            std::ptrdiff_t instruction) noexcept {
    constexpr unsigned no_line = 15;
    const unsigned char* const end = table + bytes;
    std::int64_t line = first_line;
    std::ptrdiff_t reached = 0;
    while (table != end) {
        const unsigned kind = *table >> 3 & 15U;
        reached += (*table++ & 7U) + 1;
        if (kind == 13 || kind == 14) line += signed_number(table, end);
        if (kind >= 10 && kind <= 12) line += kind - 10;
        if (instruction < reached) return kind == no_line ? 0 : static_cast<std::uint32_t>(line);
        while (table != end && (*table & 128U) == 0) ++table;
    }
    return 0;
}

}  // namespace tensorpool::platform::python
