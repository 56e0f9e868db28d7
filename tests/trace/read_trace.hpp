#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <tensorpool/live_trace.hpp>
#include <tensorpool/trace_format.hpp>

namespace tensorpool::testing {

/// The contents of a trace. Entries of each ring are in their order.
struct ReadTrace {
    std::vector<TraceProcess> processes;
    std::map<std::string, std::uint64_t> sources;  // by name
    std::map<std::string, TraceSource> kinds;      // by name
    std::map<std::uint64_t, std::string> modules;
    std::map<std::uint32_t, std::vector<TraceEntry>> rings;
    std::map<std::uint32_t, std::uint64_t> dropped;
    bool ended = false;

    void add(TraceChunkKind kind, std::uint32_t ring, std::uint64_t ring_dropped,
             std::span<const std::byte> payload) {
        switch (kind) {
            case TraceChunkKind::process:
                for (const auto& one : all<TraceProcess>(payload)) processes.push_back(one);
                break;
            case TraceChunkKind::names:
                for (const auto& one : all<TraceName>(payload)) {
                    sources[one.text] = one.source;
                    kinds[one.text] = one.kind;
                }
                break;
            case TraceChunkKind::modules:
                for (const auto& one : all<TraceModule>(payload)) modules[one.number] = one.path;
                break;
            case TraceChunkKind::entries:
                for (const auto& one : all<TraceEntry>(payload)) rings[ring].push_back(one);
                dropped[ring] = ring_dropped;
                break;
            case TraceChunkKind::end:
                ended = true;
                break;
        }
    }
    void add(const TracePart& part) { add(part.kind, part.ring, part.dropped, part.payload); }

    std::vector<TraceEntry> entries(TraceAction action) const {
        std::vector<TraceEntry> found;
        for (const auto& [ring, all] : rings) {
            for (const TraceEntry& one : all) {
                if (one.action == action) found.push_back(one);
            }
        }
        return found;
    }

private:
    template <class T>
    static std::vector<T> all(std::span<const std::byte> payload) {
        if (payload.size() % sizeof(T) != 0)
            throw std::runtime_error("a payload with half a record");
        std::vector<T> records(payload.size() / sizeof(T));
        if (!records.empty()) std::memcpy(records.data(), payload.data(), payload.size());
        return records;
    }
};

/// Reads a file as the recorder writes it: uncompressed. Throws if a part of it is invalid.
inline ReadTrace read_trace_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::span<const std::byte> all = std::as_bytes(std::span(text));
    TraceHeader header{};
    if (all.size() < sizeof header) throw std::runtime_error(path + " is not a trace");
    std::memcpy(&header, all.data(), sizeof header);
    if (std::memcmp(header.magic, trace_magic, sizeof trace_magic) != 0 ||
        header.version != trace_version) {
        throw std::runtime_error(path + " begins with another magic or version");
    }
    ReadTrace trace;
    for (std::size_t at = header.header_bytes; at < all.size();) {
        TraceChunkHeader chunk{};
        if (all.size() - at < sizeof chunk) throw std::runtime_error("a cut chunk");
        std::memcpy(&chunk, all.data() + at, sizeof chunk);
        std::uint64_t words[7];
        std::memcpy(words, &chunk, sizeof words);
        at += sizeof chunk;
        if (chunk.magic != trace_chunk_magic || chunk.check != trace_check(words) ||
            chunk.stored_bytes > all.size() - at) {
            throw std::runtime_error("a damaged chunk");
        }
        trace.add(chunk.kind, chunk.ring, chunk.dropped, all.subspan(at, chunk.stored_bytes));
        at += chunk.stored_bytes;
    }
    return trace;
}

}  // namespace tensorpool::testing
