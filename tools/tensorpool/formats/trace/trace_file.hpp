#pragma once

/// @file
/// Reads the bytes of a file or of memory, and reads and writes trace files chunk by chunk.
/// <tensorpool/trace_format.hpp> describes the format.

#include <fmt/format.h>
#include <sys/file.h>

#include <cstring>
#include <initializer_list>
#include <new>

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

inline CommandError unreadable(const std::string& path, const char* why) {
    return {finding,
            fmt::format("{} cannot be read: {}; give a trace that `tensorpool record`, `tensorpool "
                        "run --trace` or TENSORPOOL_TRACE wrote",
                        printable(path), why)};
}

/// Reads with `pread`, so that a file truncated by another process does not raise a signal.
class Input {
public:
    /// Throws CommandError if the file cannot be opened or is not a regular file.
    explicit Input(const std::string& path) : name_(path), file_(open_regular_file(path)) {
        struct stat status = {};
        if (!file_ || fstat(file_.number(), &status) != 0) {
            throw unreadable(path, errno == 0 ? "not a regular file" : std::strerror(errno));
        }
        bytes_ = static_cast<std::uint64_t>(status.st_size);
    }
    /// Reads from memory, which must outlive this object. `name` appears in error messages.
    Input(std::span<const std::byte> bytes, std::string name)
        : name_(std::move(name)), memory_(bytes), bytes_(bytes.size()) {}

    const std::string& name() const noexcept { return name_; }
    /// The size when the file was opened, or after a later truncation.
    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Fills `to` from `offset` on. Returns the number of bytes read. Throws CommandError.
    std::size_t read(std::uint64_t offset, std::span<std::byte> to) {
        if (offset >= bytes_) return 0;
        to =
            to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), bytes_ - offset)));
        if (!file_) {
            if (!to.empty()) std::memcpy(to.data(), memory_.data() + offset, to.size());
            return to.size();
        }
        std::size_t done = 0;
        while (done < to.size()) {
            const ssize_t count = pread(file_.number(), to.data() + done, to.size() - done,
                                        static_cast<off_t>(offset + done));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) throw unreadable(name_, std::strerror(errno));
            if (count == 0) {
                bytes_ = offset + done;  // another process truncated the file
                break;
            }
            done += static_cast<std::size_t>(count);
        }
        return done;
    }
    /// Returns the beginning of the file, or all of it. Throws CommandError.
    std::string text(std::uint64_t max_bytes = UINT64_MAX) {
        std::string text(std::min(max_bytes, bytes_), '\0');
        text.resize(read(0, std::as_writable_bytes(std::span(text))));
        return text;
    }

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

/// A recording of this library expands about 13 times. A file that expands much more was made to
/// exhaust the reader's memory.
inline constexpr std::uint64_t max_expansion = 256;

/// The size of the records in a chunk of this kind; 0 if the kind is unknown.
inline std::uint64_t record_bytes(TraceChunkKind kind) {
    switch (kind) {
        case TraceChunkKind::process:
            return sizeof(TraceProcess);
        case TraceChunkKind::names:
            return sizeof(TraceName);
        case TraceChunkKind::modules:
            return sizeof(TraceModule);
        case TraceChunkKind::entries:
            return sizeof(TraceEntry);
        case TraceChunkKind::end:
            return 1;
    }
    return 0;
}

/// Allows for larger headers of later versions.
inline constexpr std::uint32_t max_header_bytes = 4096;

inline std::string problem_of(const TraceHeader& header) {
    if (std::memcmp(header.magic, trace_magic, sizeof trace_magic) != 0) {
        return "not a trace; expected a file that begins with TPTRACE";
    }
    if (header.version != trace_version) {
        return fmt::format(
            "found a trace of version {}; expected version {}: read it with the "
            "tensorpool that wrote it",
            header.version, trace_version);
    }
    if (header.header_bytes < sizeof header || header.header_bytes > max_header_bytes) {
        return fmt::format("found a header of {} B; expected {} to {} B", header.header_bytes,
                           sizeof header, max_header_bytes);
    }
    return {};
}

inline std::string problem_of_sizes(const TraceChunkHeader& header) {
    if (header.stored_bytes > max_trace_chunk_bytes || header.bytes > max_trace_chunk_bytes) {
        return fmt::format("found a payload of {} B, {} B when decompressed; expected at most {} B",
                           header.stored_bytes, header.bytes, max_trace_chunk_bytes);
    }
    if (header.compression == TraceCompression::none && header.stored_bytes != header.bytes) {
        return fmt::format("found a raw payload of {} B; expected {} B as in its header",
                           header.stored_bytes, header.bytes);
    }
    return {};
}

inline std::string problem_of_payload_size(const TraceChunkHeader& header) {
    const std::uint64_t record = record_bytes(header.kind);
    if (header.kind == TraceChunkKind::process && header.bytes != record) {
        return fmt::format("found {} B about a process; expected {} B", header.bytes, record);
    }
    if (header.kind == TraceChunkKind::end && header.bytes != 0) {
        return fmt::format("found {} B at the end of a recording; expected none", header.bytes);
    }
    if (record != 0 && header.bytes % record != 0) {
        return fmt::format("found {} B of records; expected a multiple of {} B", header.bytes,
                           record);
    }
    return {};
}

inline std::string problem_of(const TraceChunkHeader& header) {
    if (header.magic != trace_chunk_magic) {
        return fmt::format("found 0x{:08x}; expected the beginning of a chunk, 0x{:08x}",
                           header.magic, trace_chunk_magic);
    }
    std::uint64_t words[7];
    std::memcpy(words, &header, sizeof words);
    if (header.check != trace_check(words)) {
        return fmt::format("found a chunk's header with the check 0x{:016x}; expected 0x{:016x}",
                           header.check, trace_check(words));
    }
    if (header.compression > TraceCompression::zstd) {
        return fmt::format("found compression {}; expected 0 (none) or 1 (zstd)",
                           static_cast<unsigned>(header.compression));
    }
    if (std::string problem = problem_of_sizes(header); !problem.empty()) return problem;
    return problem_of_payload_size(header);
}

/// Reads raw and zstd chunks. The file may be malicious: decompressed payloads are limited to 256
/// times its size, or one chunk. Used by one thread.
class TraceFile {
public:
    /// Throws TraceError if the file is not a trace or has another version.
    explicit TraceFile(Input input) : input_(std::move(input)) { read_header(); }

    /// Reads the next complete chunk; returns false at the end. Validates the payload according to
    /// its kind. Throws TraceError if the chunk is damaged.
    bool next(TraceChunk& chunk) {
        TraceChunkHeader header{};
        while (read_chunk_header(header) && is_whole(header)) {
            const std::uint64_t offset = at_;
            const bool is_known = record_bytes(header.kind) != 0;  // otherwise of a later version
            if (is_known && !read_payload(header)) return false;
            at_ += sizeof header + header.stored_bytes;
            if (!is_known) continue;
            chunk = {.offset = offset, .header = header, .payload = payload_};
            return true;
        }
        return false;
    }
    /// After the last chunk: the number of bytes of an incomplete chunk at the end, which remains
    /// if a recorder was killed or the disk was full.
    std::uint64_t cut_bytes() const noexcept {
        const std::uint64_t end = input_.bytes();
        return end > at_ ? end - at_ : 0;
    }

private:
    [[noreturn]] void fail(std::uint64_t offset, const std::string& what) const {
        throw TraceError(input_.name(), offset, what);
    }
    void read_header() {
        TraceHeader header{};
        const std::size_t got = input_.read(0, std::as_writable_bytes(std::span(&header, 1)));
        if (got < sizeof header) {
            fail(got,
                 fmt::format("found the end of the file; expected a trace, whose header takes {} B",
                             sizeof header));
        }
        if (const std::string problem = problem_of(header); !problem.empty()) fail(0, problem);
        at_ = header.header_bytes;
    }
    bool read_chunk_header(TraceChunkHeader& header) {
        const auto to = std::as_writable_bytes(std::span(&header, 1));
        if (input_.read(at_, to) < sizeof header) return false;
        if (const std::string problem = problem_of(header); !problem.empty()) fail(at_, problem);
        return true;
    }
    bool is_whole(const TraceChunkHeader& header) const {
        const std::uint64_t begin = at_ + sizeof header;
        return input_.bytes() >= begin && input_.bytes() - begin >= header.stored_bytes;
    }
    // Returns false if the file was truncated in the meantime.
    bool read_payload(const TraceChunkHeader& header) {
        const bool is_raw = header.compression == TraceCompression::none;
        std::vector<std::byte>& to = is_raw ? payload_ : stored_;
        to.resize(static_cast<std::size_t>(header.stored_bytes));
        if (input_.read(at_ + sizeof header, to) < to.size()) return false;
        if (!is_raw) decompress(header);
        return true;
    }
    void decompress(const TraceChunkHeader& header);
    // One chunk of the maximum size is always accepted.
    void check_expansion(const TraceChunkHeader& header) {
        const std::uint64_t end = at_ + sizeof header + header.stored_bytes;
        expanded_ += header.bytes;
        if (expanded_ <= max_trace_chunk_bytes || expanded_ / max_expansion <= end) return;
        fail(at_ + sizeof header,
             fmt::format("found {} B when decompressed in {} B so far; expected at most {} times "
                         "as much",
                         expanded_, end, max_expansion));
    }

    Input input_;
    std::uint64_t at_ = 0;
    std::uint64_t expanded_ = 0;  // total size of all payloads so far, decompressed
    std::vector<std::byte> stored_;
    std::vector<std::byte> payload_;
};

/// Blocks the signal of a write beyond the file size limit, which would end the program.
class NoSizeSignal {
public:
    NoSizeSignal() noexcept {
        sigemptyset(&signals_);
        sigaddset(&signals_, SIGXFSZ);
        pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    }
    ~NoSizeSignal() {
        const timespec now{};
        if (sigismember(&before_, SIGXFSZ) == 0) sigtimedwait(&signals_, nullptr, &now);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    NoSizeSignal(const NoSizeSignal&) = delete;
    NoSizeSignal& operator=(const NoSizeSignal&) = delete;

private:
    sigset_t signals_{};
    sigset_t before_{};
};

/// The size of a chunk of a ring: 4,096 entries. Larger chunks take more memory per ring and save
/// little on disk.
inline constexpr std::size_t chunk_bytes = std::size_t{1} << 17;

template <class T>
std::span<const std::byte> bytes_of(const T& object) {
    return std::as_bytes(std::span(&object, 1));
}

inline TraceChunkHeader describe(TraceChunkKind kind, std::uint64_t process, std::uint32_t ring) {
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

/// Used by one thread. One file can hold any number of processes. Entries of the same process and
/// ring are collected into chunks of at least 100 KiB, until `flush`.
class TraceWriter {
public:
    /// Creates the file with mode 0600, or replaces an existing one. Throws CommandError if that
    /// fails.
    explicit TraceWriter(const std::string& path);
    /// Flushes; errors are ignored.
    ~TraceWriter() {
        try {
            flush();
        } catch (...) {  // a destructor cannot report errors
        }
    }

    /// Adds data read from `process`. Does nothing after a failed write.
    void add(std::uint64_t process, const TracePart& part) {
        if (!problem_.empty()) return;
        if (part.kind == TraceChunkKind::entries) return add_entries(process, part);
        if (part.kind == TraceChunkKind::process) {
            // Rings of an earlier process with this number were different ones.
            write_rings_of(process);
            std::erase_if(rings_, [&](const auto& one) { return one.first.first == process; });
        }
        write_chunk(describe(part.kind, process, 0), part.payload);
    }
    /// Marks the recording of the process as properly ended.
    void end(std::uint64_t process) {
        write_rings_of(process);
        // Frees the memory of its rings, because there may be thousands of processes.
        std::erase_if(rings_, [&](const auto& one) { return one.first.first == process; });
        write_chunk(describe(TraceChunkKind::end, process, 0), {});
    }
    /// Writes everything added so far to the file, as complete chunks.
    void flush() {
        for (auto& [key, ring] : rings_) write_ring(key, ring);
    }

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

    /// Appends the parts of a piece, or nothing if that fails or has failed, so that the file ends
    /// with its last complete piece.
    void append(std::initializer_list<std::span<const std::byte>> piece) {
        if (!problem_.empty()) return;
        const NoSizeSignal guard;
        std::uint64_t bytes = 0;
        for (const auto part : piece) {
            if (!write_all(file_, part)) {
                problem_ = std::strerror(errno);
                // If this fails too, an incomplete piece remains at the end.
                (void)!ftruncate(file_.number(), static_cast<off_t>(written_bytes_));
                return;
            }
            bytes += part.size();
        }
        written_bytes_ += bytes;
    }
    void write_chunk(TraceChunkHeader header, std::span<const std::byte> payload) {
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
        append({bytes_of(header), stored});
    }
    std::span<const std::byte> compress(std::span<const std::byte> payload);
    void write_ring(const RingKey& key, Ring& ring) {
        if (ring.entries.empty()) return;
        TraceChunkHeader header = describe(TraceChunkKind::entries, key.first, key.second);
        header.dropped = ring.dropped;
        write_chunk(header, ring.entries);
        ring.entries.clear();
    }
    void write_rings_of(std::uint64_t process) {
        const auto end = rings_.end();
        for (auto at = rings_.lower_bound({process, 0}); at != end && at->first.first == process;
             ++at) {
            write_ring(at->first, at->second);
        }
    }
    void add_entries(std::uint64_t process, const TracePart& part) {
        const auto at = rings_.try_emplace({process, part.ring}).first;
        Ring& ring = at->second;
        dropped_ += part.dropped - std::min(part.dropped, ring.dropped);
        ring.dropped = part.dropped;
        entries_ += part.payload.size() / sizeof(TraceEntry);
        for (std::span<const std::byte> left = part.payload; !left.empty();) {
            const auto piece = left.first(std::min(left.size(), chunk_bytes - ring.entries.size()));
            ring.entries.insert(ring.entries.end(), piece.begin(), piece.end());
            left = left.subspan(piece.size());
            if (ring.entries.size() == chunk_bytes) write_ring(at->first, ring);
        }
    }

    Descriptor file_;
    std::shared_ptr<ZSTD_CCtx_s> context_;  // shared, so that its type need not be known here
    std::map<RingKey, Ring> rings_;
    std::vector<std::byte> frame_;  // the last compressed chunk
    std::string problem_;
    std::uint64_t entries_ = 0;
    std::uint64_t dropped_ = 0;
    std::uint64_t written_bytes_ = 0;
};

}  // namespace tensorpool::command::trace
