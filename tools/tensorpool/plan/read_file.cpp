#include "plan/read_file.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "plan/formats.hpp"
#include "formats/trace/input.hpp"
#include "formats/trace/rmm_log.hpp"

namespace tensorpool::command::planning {
namespace {

std::string read(trace::Input& input, std::uint64_t bytes) {
    std::string text(bytes, '\0');
    text.resize(input.read(0, std::as_writable_bytes(std::span(text))));
    return text;
}

bool is_recording(std::string_view beginning) {
    return beginning.starts_with(std::string_view(trace_magic, sizeof trace_magic)) ||
           beginning.starts_with(trace::rmm_log_beginning);
}

}  // namespace

Buffers read_text(std::string_view text, const std::string& name) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool is_json =
        first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
    return is_json ? read_json(text, name) : read_csv(text, name);
}

Buffers read_file(const std::string& path, const Choice& choice) {
    trace::Input input(path);
    constexpr std::uint64_t beginning_bytes = 64;
    if (is_recording(read(input, std::min(beginning_bytes, input.bytes())))) {
        return buffers_of(trace::read_recording(path), choice, path);
    }
    return read_text(read(input, input.bytes()), path);
}

}  // namespace tensorpool::command::planning
