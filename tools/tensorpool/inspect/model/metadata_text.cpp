#include "inspect/model/metadata_text.hpp"

#include <fmt/format.h>

#include "common/units.hpp"

namespace tensorpool::command::model {
namespace {

constexpr std::size_t max_characters = 60;
constexpr std::size_t max_elements = 8;

std::string text_of_string(std::string_view text) {
    const std::size_t line = std::min(text.find('\n'), text.size());
    if (line == text.size() && text.size() <= max_characters) return std::string(text);
    // Does not cut within a UTF-8 character: bytes after its first begin with the bits 10.
    std::size_t end = std::min(line, max_characters);
    while (end > 0 && end < text.size() && (text[end] & 0xc0) == 0x80) --end;
    return fmt::format("{}... ({} bytes)", text.substr(0, end), with_commas(text.size()));
}

std::string text_of_array(const MetadataArray& array) {
    if (array.count <= max_elements) {
        const auto values = whole_numbers(array, max_elements);
        if (values && values->size() == array.count)
            return fmt::format("[{}]", fmt::join(*values, ", "));
    }
    const std::string_view type = array.type == "string" ? "string" : array.type;
    return fmt::format("array of {}", counted(array.count, type));
}

}  // namespace

std::string text_of(const MetadataValue& value) {
    if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    if (const auto* number = std::get_if<std::uint64_t>(&value)) return std::to_string(*number);
    if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:.6g}", *number);
    if (const auto* text = std::get_if<std::string_view>(&value)) return text_of_string(*text);
    return text_of_array(std::get<MetadataArray>(value));
}

}  // namespace tensorpool::command::model
