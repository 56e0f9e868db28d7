#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "trace/input.hpp"
#include "trace/recording.hpp"
#include "trace/recording_builder.hpp"
#include "trace/rmm_log.hpp"
#include "trace/trace_file.hpp"

namespace tensorpool::command::trace {
namespace {

/// Reads enough to detect the type of a file.
std::string beginning_of(Input& input) {
    std::array<char, 64> bytes{};
    const std::size_t count = input.read(0, std::as_writable_bytes(std::span(bytes)));
    return {bytes.data(), count};
}

std::string shown_beginning(std::string_view beginning) {
    if (beginning.empty()) return "an empty file";
    return fmt::format("a file that begins with \"{}\"", printable(beginning.substr(0, 24)));
}

Recording read_trace(Input&& input) {
    RecordingBuilder builder(input.name());
    TraceFile file(std::move(input));
    for (TraceChunk chunk; file.next(chunk);) builder.add(chunk);
    return builder.finish(file.cut_bytes());
}

Recording read(Input&& input) {
    const std::string beginning = beginning_of(input);
    const bool is_trace = beginning.size() >= sizeof trace_magic &&
                          std::memcmp(beginning.data(), trace_magic, sizeof trace_magic) == 0;
    if (is_trace) return read_trace(std::move(input));
    if (beginning.starts_with(rmm_log_beginning)) return read_rmm_log(input);
    throw TraceError(input.name(), 0,
                     fmt::format("found {}; expected a trace, which begins with TPTRACE, or a log "
                                 "of RMM, which begins with {}",
                                 shown_beginning(beginning), rmm_log_beginning));
}

}  // namespace

Recording read_recording(const std::string& path) {
    return read(Input(path));
}

Recording read_recording(std::span<const std::byte> bytes, const std::string& name) {
    return read(Input(bytes, name));
}

}  // namespace tensorpool::command::trace
