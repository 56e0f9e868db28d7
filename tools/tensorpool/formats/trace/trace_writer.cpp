#include "formats/trace/trace_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>

namespace tensorpool::command::trace {
namespace {

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

CommandError unwritable(const std::string& path, const std::string& why) {
    return {finding, fmt::format("{} cannot be written: {}; give another file with -o",
                                 printable(path), why)};
}

/// Prepares the file: locks it, sets its mode and empties it. Returns "", or why it must not be
/// replaced.
std::string prepare(int file) {
    struct stat status = {};
    if (fstat(file, &status) != 0) return std::strerror(errno);
    if (!S_ISREG(status.st_mode)) return {};
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return "another process is recording into it";
    }
    if (fchmod(file, 0600) != 0 || ftruncate(file, 0) != 0) return std::strerror(errno);
    return {};
}

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

void TraceWriter::FreeContext::operator()(ZSTD_CCtx_s* context) const noexcept {
    ZSTD_freeCCtx(context);
}

TraceWriter::TraceWriter(const std::string& path)
    : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600)),
      context_(ZSTD_createCCtx()) {
    if (!file_) throw unwritable(path, std::strerror(errno));
    const std::string why = prepare(file_.number());
    if (!why.empty()) throw unwritable(path, why);
    if (context_ == nullptr) throw std::bad_alloc();
    TraceHeader header{
        .magic = {}, .version = trace_version, .header_bytes = sizeof(TraceHeader), .reserved = {}};
    std::memcpy(header.magic, trace_magic, sizeof trace_magic);
    append({bytes_of(header)});
}

void TraceWriter::append(std::initializer_list<std::span<const std::byte>> piece) {
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

// Returns an empty span if compression saves nothing.
std::span<const std::byte> TraceWriter::compress(std::span<const std::byte> payload) {
    frame_.resize(ZSTD_compressBound(payload.size()));
    const std::size_t bytes = ZSTD_compressCCtx(context_.get(), frame_.data(), frame_.size(),
                                                payload.data(), payload.size(), level);
    if (ZSTD_isError(bytes) != 0 || bytes >= payload.size()) return {};
    return std::span(frame_).first(bytes);
}

void TraceWriter::write_chunk(TraceChunkHeader header, std::span<const std::byte> payload) {
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

void TraceWriter::write_ring(const RingKey& key, Ring& ring) {
    if (ring.entries.empty()) return;
    TraceChunkHeader header = describe(TraceChunkKind::entries, key.first, key.second);
    header.dropped = ring.dropped;
    write_chunk(header, ring.entries);
    ring.entries.clear();
}

void TraceWriter::write_rings_of(std::uint64_t process) {
    const auto end = rings_.end();
    for (auto at = rings_.lower_bound({process, 0}); at != end && at->first.first == process;
         ++at) {
        write_ring(at->first, at->second);
    }
}

void TraceWriter::add_entries(std::uint64_t process, const TracePart& part) {
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

TraceWriter::~TraceWriter() {
    try {
        flush();
    } catch (...) {  // a destructor cannot report errors
    }
}

void TraceWriter::add(std::uint64_t process, const TracePart& part) {
    if (!problem_.empty()) return;
    if (part.kind == TraceChunkKind::entries) return add_entries(process, part);
    if (part.kind == TraceChunkKind::process) {
        // Rings of an earlier process with this number were different ones.
        write_rings_of(process);
        std::erase_if(rings_, [&](const auto& one) { return one.first.first == process; });
    }
    write_chunk(describe(part.kind, process, 0), part.payload);
}

void TraceWriter::end(std::uint64_t process) {
    write_rings_of(process);
    // Frees the memory of its rings, because there may be thousands of processes.
    std::erase_if(rings_, [&](const auto& one) { return one.first.first == process; });
    write_chunk(describe(TraceChunkKind::end, process, 0), {});
}

void TraceWriter::flush() {
    for (auto& [key, ring] : rings_) write_ring(key, ring);
}

}  // namespace tensorpool::command::trace
