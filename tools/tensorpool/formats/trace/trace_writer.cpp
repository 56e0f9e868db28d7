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
#include <initializer_list>
#include <new>

namespace tensorpool::command::trace {
namespace {

/// A file that grows in pieces. If the disk is full or the file size limit is reached, writing ends
/// with a message and without a signal. The file then ends with its last complete piece.
class OutputFile {
public:
    using Piece = std::initializer_list<std::span<const std::byte>>;

    /// Creates the file with mode 0600, or empties an existing one. Throws CommandError if that
    /// fails, or if another process records into it.
    explicit OutputFile(const std::string& path);

    /// Appends the parts of a piece. Does nothing after a failure.
    void append(Piece piece);

    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Why the file cannot be written further; "" if it can.
    const std::string& problem() const noexcept { return problem_; }

private:
    Descriptor file_;
    std::uint64_t bytes_ = 0;
    std::string problem_;
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

OutputFile::OutputFile(const std::string& path)
    : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600)) {
    if (!file_) throw unwritable(path, std::strerror(errno));
    const std::string why = prepare(file_.number());
    if (!why.empty()) throw unwritable(path, why);
}

void OutputFile::append(Piece piece) {
    if (!problem_.empty()) return;
    const NoSizeSignal guard;
    std::uint64_t bytes = 0;
    for (const auto part : piece) {
        if (!write_all(file_, part)) {
            problem_ = std::strerror(errno);
            // If this fails too, an incomplete piece remains at the end.
            (void)!ftruncate(file_.number(), static_cast<off_t>(bytes_));
            return;
        }
        bytes += part.size();
    }
    bytes_ += bytes;
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
