#pragma once

/// @file
/// Reads the bytes of a file or of memory, and reads and writes trace files chunk by chunk.
/// <tensorpool/trace_format.hpp> describes the format.

#include <initializer_list>

#include <tensorpool/live_trace.hpp>

#include "common/posix.hpp"
#include "common/printable.hpp"
#include "common/settings.hpp"

struct ZSTD_CCtx_s;

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
    /// Returns the beginning of the file, or all of it. Throws CommandError.
    std::string text(std::uint64_t max_bytes = UINT64_MAX);

private:
    std::string name_;
    Descriptor file_;
    std::span<const std::byte> memory_;
    std::uint64_t bytes_ = 0;
};

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
    /// Throws TraceError if the file is not a trace or has another version.
    explicit TraceFile(Input input) : input_(std::move(input)) { read_header(); }

    /// Reads the next complete chunk; returns false at the end. Validates the payload according to
    /// its kind. Throws TraceError if the chunk is damaged.
    bool next(TraceChunk& chunk);
    /// After the last chunk: the number of bytes of an incomplete chunk at the end, which remains
    /// if a recorder was killed or the disk was full.
    std::uint64_t cut_bytes() const noexcept;

private:
    [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const;
    void read_header();
    bool read_chunk_header(TraceChunkHeader& header);
    bool is_whole(const TraceChunkHeader& header) const;
    bool read_payload(const TraceChunkHeader& header);
    void decompress(const TraceChunkHeader& header);
    void check_expansion(const TraceChunkHeader& header);

    Input input_;
    std::uint64_t at_ = 0;
    std::uint64_t expanded_ = 0;  // total size of all payloads so far, decompressed
    std::vector<std::byte> stored_;
    std::vector<std::byte> payload_;
};

/// Used by one thread. One file can hold any number of processes. Entries of the same process and
/// ring are collected into chunks of at least 100 KiB, until `flush`.
class TraceWriter {
public:
    /// Creates the file with mode 0600, or replaces an existing one. Throws CommandError if that
    /// fails.
    explicit TraceWriter(const std::string& path);
    TraceWriter(const TraceWriter&) = delete;
    TraceWriter& operator=(const TraceWriter&) = delete;
    /// Flushes; errors are ignored.
    ~TraceWriter();

    /// Adds data read from `process`. Does nothing after a failed write.
    void add(std::uint64_t process, const TracePart& part);
    /// Marks the recording of the process as properly ended.
    void end(std::uint64_t process);
    /// Writes everything added so far to the file, as complete chunks.
    void flush();

    /// Why writing stopped, for example "no space left on device"; "" if it has not.
    const std::string& problem() const noexcept { return problem_; }
    std::uint64_t entries() const noexcept { return entries_; }
    std::uint64_t dropped() const noexcept { return dropped_; }  ///< because rings were full
    std::uint64_t written_bytes() const noexcept { return written_bytes_; }  ///< size of the file

private:
    struct Ring {
        std::vector<std::byte> entries;  // not written yet
        std::uint64_t dropped = 0;
    };
    using RingKey = std::pair<std::uint64_t, std::uint32_t>;  // process, ring
    struct FreeContext {
        void operator()(ZSTD_CCtx_s* context) const noexcept;
    };

    /// Appends the parts of a piece, or nothing if that fails or has failed, so that the file ends
    /// with its last complete piece.
    void append(std::initializer_list<std::span<const std::byte>> piece);
    void write_chunk(TraceChunkHeader header, std::span<const std::byte> payload);
    std::span<const std::byte> compress(std::span<const std::byte> payload);
    void write_ring(const RingKey& key, Ring& ring);
    void write_rings_of(std::uint64_t process);
    void add_entries(std::uint64_t process, const TracePart& part);

    Descriptor file_;
    std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
    std::map<RingKey, Ring> rings_;
    std::vector<std::byte> frame_;  // the last compressed chunk
    std::string problem_;
    std::uint64_t entries_ = 0;
    std::uint64_t dropped_ = 0;
    std::uint64_t written_bytes_ = 0;
};

}  // namespace tensorpool::command::trace
