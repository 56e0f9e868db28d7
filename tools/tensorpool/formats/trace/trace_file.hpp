#pragma once

/// @file
/// Reads a trace file chunk by chunk. <tensorpool/trace_format.hpp> describes the format.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <tensorpool/trace_format.hpp>

#include "formats/trace/input.hpp"

namespace tensorpool::command::trace {

class Input;

struct TraceChunk {
    std::uint64_t offset = 0;  ///< offset of its header in the file
    TraceChunkHeader header = {};
    /// The payload, decompressed: `header.bytes` bytes, aligned for any record. Valid until the
    /// next chunk is read.
    std::span<const std::byte> payload;

    /// Returns the payload as records of the chunk's kind.
    template <class Record>
    std::span<const Record> records() const noexcept {
        return {reinterpret_cast<const Record*>(payload.data()), payload.size() / sizeof(Record)};
    }
};

/// Reads raw and zstd chunks. The file may be malicious: decompressed payloads are limited to 256
/// times its size, or one chunk. Used by one thread.
class TraceFile {
public:
    /// Throws TraceError if the file is not a trace or has another version, and CommandError if it
    /// cannot be opened.
    explicit TraceFile(const std::string& path);
    /// Reads from memory, which must outlive this object. `name` appears in error messages.
    TraceFile(std::span<const std::byte> bytes, std::string name);
    explicit TraceFile(Input&& input);
    TraceFile(TraceFile&&) noexcept;
    TraceFile& operator=(TraceFile&&) noexcept;
    ~TraceFile();

    /// Reads the next complete chunk; returns false at the end. Validates the payload according to
    /// its kind. Throws TraceError if the chunk is damaged.
    bool next(TraceChunk& chunk);
    /// After the last chunk: the number of bytes of an incomplete chunk at the end, which remains
    /// if a recorder was killed or the disk was full.
    std::uint64_t cut_bytes() const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool::command::trace
