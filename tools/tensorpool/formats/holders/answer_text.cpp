#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/printable.hpp"
#include "common/table.hpp"
#include "formats/holders/answer.hpp"
#include "common/units.hpp"

namespace tensorpool::command::holders {
namespace {

/// Wide enough for every row.
constexpr std::size_t width = 1000;

constexpr const char* without_holder = "no Python object: C or C++ code, or the autograd graph";

std::string array_text(const HeldMemory& memory) {
    std::string text =
        fmt::format("{} ({}) {}", memory.type, fmt::join(memory.shape, ", "), memory.element_type);
    if (memory.device != "cpu") text += " on " + memory.device;
    return printable(text);
}

std::string holder_text(const HeldMemory& memory, std::size_t at, bool is_cut) {
    if (memory.held_by.empty()) return is_cut ? "unknown: the search was cut" : without_holder;
    std::string text = printable(memory.held_by[at]);
    if (at + 1 == memory.held_by.size() && memory.more_holders != 0) {
        text += fmt::format(" and {} more", with_commas(memory.more_holders));
    }
    return text;
}

}  // namespace

std::string to_text(const Answer& answer, std::uint64_t process, std::size_t top, Sizes sizes) {
    std::string text = fmt::format("process {} paused for {:.0f} ms to look at {} objects", process,
                                   answer.pause_seconds * 1e3, with_commas(answer.objects));
    if (answer.is_cut) text += "; the search was cut, because it took too long";
    Table table{.columns = {{"bytes"}, {"array", Side::left}, {"held by", Side::left}}};
    for (std::size_t i = 0; i < std::min(top, answer.largest.size()); ++i) {
        const HeldMemory& one = answer.largest[i];
        table.rows.push_back({{format_size(one.bytes, sizes)},
                              {array_text(one)},
                              {holder_text(one, 0, answer.is_cut)}});
        for (std::size_t at = 1; at < one.held_by.size(); ++at) {
            table.rows.push_back({{}, {}, {holder_text(one, at, answer.is_cut)}});
        }
    }
    if (table.rows.empty()) return text + "\nit holds no NumPy array and no PyTorch tensor";
    for (const std::string& line : lay_out(table, width)) text += '\n' + line;
    return text;
}

}  // namespace tensorpool::command::holders
