#include "made_trace.hpp"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace tensorpool::command::trace::testing {
namespace {

constexpr std::uint64_t first_cycles = 1000;
constexpr std::uint64_t first_unix_ns = 5'000'000'000;
constexpr std::uint64_t last_cycles = 1'001'000;
constexpr std::uint64_t ns_per_cycle = 10;

std::uint64_t unix_ns_of(std::uint64_t cycles) {
    return first_unix_ns + (cycles - first_cycles) * ns_per_cycle;
}

template <std::size_t Bytes>
void put(char (&to)[Bytes], std::string_view text) {
    std::memcpy(to, text.data(), std::min(text.size(), Bytes));
}

template <class T>
std::span<const std::byte> bytes_of(const T& object) {
    return std::as_bytes(std::span(&object, 1));
}

void append(std::vector<std::byte>& to, std::span<const std::byte> what) {
    to.insert(to.end(), what.begin(), what.end());
}

}  // namespace

std::vector<std::byte> zstd_frame(std::span<const std::byte> payload) {
    std::vector<std::byte> frame(ZSTD_compressBound(payload.size()));
    const std::size_t bytes =
        ZSTD_compress(frame.data(), frame.size(), payload.data(), payload.size(), 1);
    if (ZSTD_isError(bytes) != 0) throw std::runtime_error(ZSTD_getErrorName(bytes));
    frame.resize(bytes);
    return frame;
}

MadeTrace::MadeTrace() {
    TraceHeader header{};
    put(header.magic, {trace_magic, sizeof trace_magic});
    header.version = trace_version;
    header.header_bytes = sizeof header;
    append(bytes_, bytes_of(header));
    boundaries_.push_back(bytes_.size());
}

MadeTrace& MadeTrace::chunk(TraceChunkKind kind, std::span<const std::byte> payload,
                            const Edit& edit) {
    const std::vector<std::byte> frame =
        compressed_ ? zstd_frame(payload) : std::vector(payload.begin(), payload.end());
    TraceChunkHeader header{};
    header.magic = trace_chunk_magic;
    header.kind = kind;
    header.compression = compressed_ ? TraceCompression::zstd : TraceCompression::none;
    header.process = 7;
    header.stored_bytes = frame.size();
    header.bytes = payload.size();
    header.cycles = last_cycles;
    header.unix_ns = unix_ns_of(last_cycles);
    if (edit) edit(header);
    std::uint64_t words[7];
    std::memcpy(words, &header, sizeof words);
    header.check = trace_check(words);
    append(bytes_, bytes_of(header));
    append(bytes_, frame);
    boundaries_.push_back(bytes_.size());
    return *this;
}

MadeTrace& MadeTrace::compressed() {
    compressed_ = true;
    return *this;
}

MadeTrace& MadeTrace::process(std::uint32_t number, std::uint64_t begun_cycles) {
    TraceProcess process{};
    process.process = number;
    process.begun_cycles = begun_cycles;
    process.begun_unix_ns = unix_ns_of(begun_cycles);
    process.page_bytes = 4096;
    process.from_start = 1;
    put(process.name, "program" + std::to_string(number));
    return chunk(TraceChunkKind::process, bytes_of(process),
                 [&](TraceChunkHeader& header) { header.process = number; });
}

MadeTrace& MadeTrace::name(std::uint64_t source, TraceSource kind, std::string_view text,
                           std::uint32_t process) {
    TraceName name{};
    name.source = source;
    name.kind = kind;
    put(name.text, text);
    return chunk(TraceChunkKind::names, bytes_of(name),
                 [&](TraceChunkHeader& header) { header.process = process; });
}

MadeTrace& MadeTrace::module(std::uint64_t number, std::string_view path, std::uint32_t process) {
    TraceModule module{};
    module.number = number;
    put(module.path, path);
    return chunk(TraceChunkKind::modules, bytes_of(module),
                 [&](TraceChunkHeader& header) { header.process = process; });
}

MadeTrace& MadeTrace::entries(const std::vector<TraceEntry>& entries, std::uint32_t ring,
                              std::uint32_t process, std::uint64_t dropped) {
    return chunk(TraceChunkKind::entries, std::as_bytes(std::span(entries)),
                 [&](TraceChunkHeader& header) {
                     header.process = process;
                     header.ring = ring;
                     header.dropped = dropped;
                 });
}

MadeTrace& MadeTrace::end(std::uint32_t process) {
    return chunk(TraceChunkKind::end, {},
                 [&](TraceChunkHeader& header) { header.process = process; });
}

TraceEntry thread_entry(std::uint64_t number, std::uint64_t cycles) {
    return entry(TraceAction::thread, cycles, number, 0, 0);
}

TraceEntry entry(TraceAction action, std::uint64_t cycles, std::uint64_t address,
                 std::uint64_t bytes, std::uint32_t source, unsigned alignment_log2) {
    return {.cycles = cycles,
            .address = address,
            .bytes = bytes,
            .source = source,
            .action = action,
            .alignment_log2 = static_cast<std::uint8_t>(alignment_log2),
            .reserved = 0};
}

TraceEntry frames_entry(std::vector<std::uint64_t> frames, bool last) {
    TraceFrames some{};
    some.action = TraceAction::frames;
    some.count = static_cast<std::uint8_t>(frames.size());
    some.last = last ? 1 : 0;
    std::copy_n(frames.begin(), std::min<std::size_t>(frames.size(), 3), some.frames);
    return std::bit_cast<TraceEntry>(some);
}

}  // namespace tensorpool::command::trace::testing
