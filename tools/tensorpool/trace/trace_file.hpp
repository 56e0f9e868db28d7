#pragma once

/// @file
/// A trace file, read chunk by chunk: see <tensorpool/trace_format.hpp>.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <tensorpool/trace_format.hpp>

#include "trace/trace_error.hpp"

namespace tensorpool::command::trace {

class Input;

struct TraceChunk {
    std::uint64_t offset = 0;  ///< of its header in the file
    TraceChunkHeader header = {};
    /// Decompressed: `header.bytes`, aligned for any record. Valid until the next one is read.
    std::span<const std::byte> payload;

    /// The payload as records of the chunk's kind.
    template <class Record>
    std::span<const Record> records() const noexcept {
        return {reinterpret_cast<const Record*>(payload.data()), payload.size() / sizeof(Record)};
    }
};

/// Reads raw and zstd chunks alike; the file may be hostile, but never brings more than 256 times
/// its bytes, or one chunk. One thread's.
class TraceFile {
public:
    /// Throws TraceError where it is no trace or of another version, and CommandError where it
    /// cannot be opened.
    explicit TraceFile(const std::string& path);
    /// Over bytes that outlive it; `name` stands in errors.
    TraceFile(std::span<const std::byte> bytes, std::string name);
    explicit TraceFile(Input&& input);
    TraceFile(TraceFile&&) noexcept;
    TraceFile& operator=(TraceFile&&) noexcept;
    ~TraceFile();

    /// The next chunk that is whole; false at the end. Payloads are checked for what their kind
    /// wants. Throws TraceError where it is damaged.
    bool next(TraceChunk& chunk);
    /// After the last one: how many bytes at the end are no whole chunk, as where a recorder was
    /// killed or the disk full.
    std::uint64_t cut_bytes() const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool::command::trace
