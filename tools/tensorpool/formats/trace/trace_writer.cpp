#include "formats/trace/trace_writer.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "formats/trace/output_file.hpp"

namespace tensorpool::command::trace {
namespace {

/// The size of a chunk of a ring: 4,096 entries. Larger chunks take more memory per ring and save
/// little on disk.
constexpr std::size_t chunk_bytes = std::size_t{1} << 17;
/// For calls of real programs, this level is as fast as level 1 and takes three quarters of its
/// bytes: about 27 million entries per second at 2.5 B each on the measured machine.
constexpr int level = 3;

template <class T>
std::span<const std::byte> bytes_of(const T& object) {
    return std::as_bytes(std::span(&object, 1));
}

struct FreeContext {
    void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
};

TraceChunkHeader describe(TraceChunkKind kind, std::uint64_t process, std::uint32_t ring) {
    const TraceMoment now = trace_moment();
    return {.magic = trace_chunk_magic,
            .kind = kind,
            .compression = TraceCompression::none,
            .process = static_cast<std::uint32_t>(process),
            .ring = ring,
            .stored_bytes = 0,
            .bytes = 0,
            .cycles = now.cycles,
            .unix_ns = now.unix_ns,
            .dropped = 0,
            .check = 0};
}

}  // namespace

struct TraceWriter::State {
    struct Ring {
        std::vector<std::byte> entries;  // not written yet
        std::uint64_t dropped = 0;
    };
    using RingKey = std::pair<std::uint64_t, std::uint32_t>;  // process, ring

    OutputFile file;
    std::unique_ptr<ZSTD_CCtx, FreeContext> context{ZSTD_createCCtx()};
    std::map<RingKey, Ring> rings;
    std::vector<std::byte> frame;  // the last compressed chunk
    std::uint64_t entries = 0;
    std::uint64_t dropped = 0;

    explicit State(const std::string& path);
    void write_chunk(TraceChunkHeader header, std::span<const std::byte> payload);
    std::span<const std::byte> compress(std::span<const std::byte> payload);
    void write_ring(const RingKey& key, Ring& ring);
    void write_rings_of(std::uint64_t process);
    void add_entries(std::uint64_t process, const TracePart& part);
};

TraceWriter::State::State(const std::string& path) : file(path) {
    if (context == nullptr) throw std::bad_alloc();
    TraceHeader header{
        .magic = {}, .version = trace_version, .header_bytes = sizeof(TraceHeader), .reserved = {}};
    std::memcpy(header.magic, trace_magic, sizeof trace_magic);
    file.append({bytes_of(header)});
}

// Returns an empty span if compression saves nothing.
std::span<const std::byte> TraceWriter::State::compress(std::span<const std::byte> payload) {
    frame.resize(ZSTD_compressBound(payload.size()));
    const std::size_t bytes = ZSTD_compressCCtx(context.get(), frame.data(), frame.size(),
                                                payload.data(), payload.size(), level);
    if (ZSTD_isError(bytes) != 0 || bytes >= payload.size()) return {};
    return std::span(frame).first(bytes);
}

void TraceWriter::State::write_chunk(TraceChunkHeader header, std::span<const std::byte> payload) {
    std::span<const std::byte> stored = compress(payload);
    if (stored.empty()) {
        stored = payload;
    } else {
        header.compression = TraceCompression::zstd;
    }
    header.stored_bytes = stored.size();
    header.bytes = payload.size();
    std::uint64_t words[7];
    std::memcpy(words, &header, sizeof words);
    header.check = trace_check(words);
    file.append({bytes_of(header), stored});
}

void TraceWriter::State::write_ring(const RingKey& key, Ring& ring) {
    if (ring.entries.empty()) return;
    TraceChunkHeader header = describe(TraceChunkKind::entries, key.first, key.second);
    header.dropped = ring.dropped;
    write_chunk(header, ring.entries);
    ring.entries.clear();
}

void TraceWriter::State::write_rings_of(std::uint64_t process) {
    const auto end = rings.end();
    for (auto at = rings.lower_bound({process, 0}); at != end && at->first.first == process; ++at) {
        write_ring(at->first, at->second);
    }
}

void TraceWriter::State::add_entries(std::uint64_t process, const TracePart& part) {
    const auto at = rings.try_emplace({process, part.ring}).first;
    Ring& ring = at->second;
    dropped += part.dropped - std::min(part.dropped, ring.dropped);
    ring.dropped = part.dropped;
    entries += part.payload.size() / sizeof(TraceEntry);
    for (std::span<const std::byte> left = part.payload; !left.empty();) {
        const auto piece = left.first(std::min(left.size(), chunk_bytes - ring.entries.size()));
        ring.entries.insert(ring.entries.end(), piece.begin(), piece.end());
        left = left.subspan(piece.size());
        if (ring.entries.size() == chunk_bytes) write_ring(at->first, ring);
    }
}

TraceWriter::TraceWriter(const std::string& path) : state_(std::make_unique<State>(path)) {}
TraceWriter::TraceWriter(TraceWriter&&) noexcept = default;
TraceWriter& TraceWriter::operator=(TraceWriter&&) noexcept = default;

TraceWriter::~TraceWriter() {
    if (state_ == nullptr) return;
    try {
        flush();
    } catch (...) {  // a destructor cannot report errors
    }
}

void TraceWriter::add(std::uint64_t process, const TracePart& part) {
    State& state = *state_;
    if (!problem().empty()) return;
    if (part.kind == TraceChunkKind::entries) return state.add_entries(process, part);
    if (part.kind == TraceChunkKind::process) {
        // Rings of an earlier process with this number were different ones.
        state.write_rings_of(process);
        std::erase_if(state.rings, [&](const auto& one) { return one.first.first == process; });
    }
    state.write_chunk(describe(part.kind, process, 0), part.payload);
}

void TraceWriter::end(std::uint64_t process) {
    state_->write_rings_of(process);
    // Frees the memory of its rings, because there may be thousands of processes.
    std::erase_if(state_->rings, [&](const auto& one) { return one.first.first == process; });
    state_->write_chunk(describe(TraceChunkKind::end, process, 0), {});
}

void TraceWriter::flush() {
    for (auto& [key, ring] : state_->rings) state_->write_ring(key, ring);
}

const std::string& TraceWriter::problem() const noexcept {
    return state_->file.problem();
}

std::uint64_t TraceWriter::entries() const noexcept {
    return state_->entries;
}

std::uint64_t TraceWriter::dropped() const noexcept {
    return state_->dropped;
}

std::uint64_t TraceWriter::written_bytes() const noexcept {
    return state_->file.bytes();
}

}  // namespace tensorpool::command::trace
