#include "formats/trace/trace_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace tensorpool::command::trace {
namespace {

CommandError unreadable(const std::string& path, const char* why) {
    return {finding,
            fmt::format("{} cannot be read: {}; give a trace that `tensorpool record`, `tensorpool "
                        "run --trace` or TENSORPOOL_TRACE wrote",
                        printable(path), why)};
}

/// Allows for larger headers of later versions.
constexpr std::uint32_t max_header_bytes = 4096;

/// A recording expands about 13 times (trace_writer.cpp). A file that expands much more was made to
/// exhaust the reader's memory.
constexpr std::uint64_t max_expansion = 256;

/// The size of the records in a chunk of this kind; 0 if the kind is unknown.
std::uint64_t record_bytes(TraceChunkKind kind) {
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

std::string problem_of(const TraceHeader& header) {
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

std::string problem_of_sizes(const TraceChunkHeader& header) {
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

std::string problem_of_payload_size(const TraceChunkHeader& header) {
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

std::string problem_of(const TraceChunkHeader& header) {
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

}  // namespace

Input::Input(const std::string& path) : name_(path), file_(open_regular_file(path)) {
    struct stat status = {};
    if (!file_ || fstat(file_.number(), &status) != 0) {
        throw unreadable(path, errno == 0 ? "not a regular file" : std::strerror(errno));
    }
    bytes_ = static_cast<std::uint64_t>(status.st_size);
}

Input::Input(std::span<const std::byte> bytes, std::string name)
    : name_(std::move(name)), memory_(bytes), bytes_(bytes.size()) {}

std::size_t Input::read(std::uint64_t offset, std::span<std::byte> to) {
    if (offset >= bytes_) return 0;
    to = to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), bytes_ - offset)));
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

std::string Input::text(std::uint64_t max_bytes) {
    std::string text(std::min(max_bytes, bytes_), '\0');
    text.resize(read(0, std::as_writable_bytes(std::span(text))));
    return text;
}

void TraceFile::fail(std::uint64_t offset, const std::string& what) const {
    throw TraceError(input_.name(), offset, what);
}

void TraceFile::read_header() {
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

bool TraceFile::read_chunk_header(TraceChunkHeader& header) {
    const auto to = std::as_writable_bytes(std::span(&header, 1));
    if (input_.read(at_, to) < sizeof header) return false;
    if (const std::string problem = problem_of(header); !problem.empty()) fail(at_, problem);
    return true;
}

bool TraceFile::is_whole(const TraceChunkHeader& header) const {
    const std::uint64_t begin = at_ + sizeof header;
    return input_.bytes() >= begin && input_.bytes() - begin >= header.stored_bytes;
}

// Returns false if the file was truncated in the meantime.
bool TraceFile::read_payload(const TraceChunkHeader& header) {
    const bool is_raw = header.compression == TraceCompression::none;
    std::vector<std::byte>& to = is_raw ? payload_ : stored_;
    to.resize(static_cast<std::size_t>(header.stored_bytes));
    if (input_.read(at_ + sizeof header, to) < to.size()) return false;
    if (!is_raw) decompress(header);
    return true;
}

// One chunk of the maximum size is always accepted.
void TraceFile::check_expansion(const TraceChunkHeader& header) {
    const std::uint64_t end = at_ + sizeof header + header.stored_bytes;
    expanded_ += header.bytes;
    if (expanded_ <= max_trace_chunk_bytes || expanded_ / max_expansion <= end) return;
    fail(at_ + sizeof header,
         fmt::format("found {} B when decompressed in {} B so far; expected at most {} times "
                     "as much",
                     expanded_, end, max_expansion));
}

void TraceFile::decompress(const TraceChunkHeader& header) {
    check_expansion(header);
    payload_.resize(static_cast<std::size_t>(header.bytes));
    const std::size_t got =
        ZSTD_decompress(payload_.data(), payload_.size(), stored_.data(), stored_.size());
    if (got == payload_.size()) return;
    const char* const why =
        ZSTD_isError(got) != 0 ? ZSTD_getErrorName(got) : "Its contents have another size";
    fail(at_ + sizeof header,
         fmt::format("found a damaged zstd frame ({}); expected one of {} B when decompressed", why,
                     header.bytes));
}

bool TraceFile::next(TraceChunk& chunk) {
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

std::uint64_t TraceFile::cut_bytes() const noexcept {
    const std::uint64_t end = input_.bytes();
    return end > at_ ? end - at_ : 0;
}

}  // namespace tensorpool::command::trace
