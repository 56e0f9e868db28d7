#pragma once

/// @file
/// Reads the bytes of a file or of memory, and a trace file chunk by chunk.
/// <tensorpool/trace_format.hpp> describes the format.

#include <memory>

#include <tensorpool/trace_format.hpp>

#include "common/posix.hpp"
#include "common/printable.hpp"
#include "common/settings.hpp"

namespace tensorpool::command::trace {

/// A file that is not a trace, or is damaged. The message names the file, the byte offset, what was
/// found and what was expected.
class TraceError : public CommandError {
public:
    TraceError(const std::string& path, std::uint64_t offset, const std::string& what)
        : CommandError(finding,
                       printable(path) + ": at byte " + std::to_string(offset) + ": " + what) {}
};

/// Reads with `pread`, so that a file truncated by another process does not raise a signal.
class Input {
public:
    /// Throws CommandError if the file cannot be opened or is not a regular file.
    explicit Input(const std::string& path);
    /// Reads from memory, which must outlive this object. `name` appears in error messages.
    Input(std::span<const std::byte> bytes, std::string name);

    const std::string& name() const noexcept { return name_; }
    /// The size when the file was opened, or after a later truncation.
    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Fills `to` from `offset` on. Returns the number of bytes read. Throws CommandError.
    std::size_t read(std::uint64_t offset, std::span<std::byte> to);

private:
    std::string name_;
    Descriptor file_;
    std::span<const std::byte> memory_;
    std::uint64_t bytes_ = 0;
};

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
