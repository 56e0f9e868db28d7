#pragma once

#include <algorithm>
#include <cstring>
#include <thread>

#include "platform/cycle_counter.hpp"
#include "platform/files/trace_output.hpp"
#include "trace/rings.hpp"

namespace tensorpool::trace {

/// Returns nanoseconds since 1970 UTC by a clock that never jumps: the monotonic clock, which is
/// set by the wall clock at the first call in the process. Readers compute the length of a cycle
/// from two such times, so an adjusted wall clock must not lie between them.
inline std::uint64_t steady_unix_ns() noexcept {
    static constinit std::atomic<std::uint64_t> offset = 0;
    const std::uint64_t now = platform::monotonic_clock_ns();
    // Relaxed: the number is all there is. The first thread sets it.
    std::uint64_t known = offset.load(std::memory_order_relaxed);
    if (known == 0) {
        const std::uint64_t mine = platform::wall_clock_ns() - now;
        if (offset.compare_exchange_strong(known, mine, std::memory_order_relaxed)) known = mine;
    }
    return now + known;
}

/// The file of a recording. A thread whose ring is full writes the ring out, uncompressed. The
/// thread that ends the process writes out all rings.
class TraceFile : public base::Lockable {
public:
    constexpr explicit TraceFile(Recording& recording) noexcept : recording_(recording) {}

    /// Opens `path` and writes the headers that precede all entries. Reports a file that cannot be
    /// written on stderr and returns false.
    bool open(const char* path) noexcept {
        if (!output_.open(path)) {
            platform::say(
                "TENSORPOOL_TRACE is '%.200s', which cannot be written: %s; used instead: no "
                "recording",
                path, output_.problem());
            return false;
        }
        TraceHeader header{.magic = {},
                           .version = trace_version,
                           .header_bytes = sizeof(TraceHeader),
                           .reserved = {}};
        std::memcpy(header.magic, trace_magic, sizeof trace_magic);
        names_written_ = modules_written_ = 0;
        const TraceProcess& process = recording_.rings.header().process;
        if (!output_.append({&header, sizeof header}, {nullptr, 0}) ||
            !write_chunk(TraceChunkKind::process, 0, &process, sizeof process)) {
            platform::say(
                "TENSORPOOL_TRACE is '%.200s', which accepts no data; used instead: no recording",
                path);
            output_.close();
            return false;
        }
        return true;
    }
    bool is_open() const noexcept { return output_.is_open(); }
    /// Writes one ring out. Returns false if another thread is doing so, or if the file accepts no
    /// more data, which ends the recording.
    bool write_out(std::size_t ring) noexcept { return claim(ring) && write_claimed(ring); }
    /// Writes all rings out and marks the end of the recording. Other threads may continue during
    /// the call. Their further entries are lost.
    void finish() noexcept {
        const bool was_on = events::recorder_hooks.record.exchange(nullptr, relaxed) != nullptr;
        const std::size_t rings = recording_.rings.header().rings.load(std::memory_order_acquire);
        bool done = was_on;
        for (std::size_t ring = 0; done && ring < rings; ++ring) done = write_out_or_leave(ring);
        if (done) (void)write_chunk(TraceChunkKind::end, 0, nullptr, 0);
    }

    /// Closes the file in the child of a fork, which does not write to it. REQUIRES: locked.
    void forget() noexcept {
        output_.close();
        for (auto& writes : writes_) writes.store(false, relaxed);  // set by threads of the parent
    }

private:
    bool claim(std::size_t ring) noexcept {
        return !writes_[ring].exchange(true, std::memory_order_acquire);
    }
    // Runs at exit. Waits a moment for a thread that is writing its ring out, but not forever: if a
    // signal ends the process, it may be this thread.
    bool write_out_or_leave(std::size_t ring) noexcept {
        constexpr unsigned max_waits = 10'000;
        for (unsigned waits = 0; !claim(ring); ++waits) {
            if (waits == max_waits) return true;
            std::this_thread::yield();
        }
        return write_claimed(ring);
    }
    // With a file as the target, the control belongs to this process, and its tails say what was
    // written out.
    bool write_claimed(std::size_t ring) noexcept {
        const RingHead& head = recording_.rings.head(ring);
        Counter& tail = recording_.control.load(relaxed)->tails[ring];
        bool done = write_names();
        for (std::uint64_t from = tail.load(relaxed),
                           until = head.written.load(std::memory_order_acquire);
             done && from != until;) {
            const std::uint64_t begin = from % ring_entries;
            const std::uint64_t count = std::min(until - from, ring_entries - begin);
            done = write_chunk(TraceChunkKind::entries, ring,
                               recording_.rings.entries(ring) + begin, count * sizeof(TraceEntry));
            from += count;
            if (done) tail.store(from, relaxed);
        }
        writes_[ring].store(false, std::memory_order_release);
        if (!done) stop();
        return done;
    }
    // Names are written before the entries that refer to them by number.
    bool write_names() noexcept {
        const std::lock_guard guard(mutex_);
        const std::uint64_t names = recording_.rings.header().names.load(std::memory_order_acquire);
        const std::uint64_t modules =
            recording_.rings.header().modules.load(std::memory_order_acquire);
        if (names != names_written_ &&
            !write_chunk(TraceChunkKind::names, 0, recording_.rings.name_table() + names_written_,
                         (names - names_written_) * sizeof(TraceName))) {
            return false;
        }
        names_written_ = names;
        if (modules != modules_written_ &&
            !write_chunk(TraceChunkKind::modules, 0,
                         recording_.rings.module_table() + modules_written_,
                         (modules - modules_written_) * sizeof(TraceModule))) {
            return false;
        }
        modules_written_ = modules;
        return true;
    }
    bool write_chunk(TraceChunkKind kind, std::size_t ring, const void* data,
                     std::size_t bytes) noexcept {
        const bool has_ring = kind == TraceChunkKind::entries;
        TraceChunkHeader header{
            .magic = trace_chunk_magic,
            .kind = kind,
            .compression = TraceCompression::none,
            .process = static_cast<std::uint32_t>(recording_.rings.header().process.process),
            .ring = static_cast<std::uint32_t>(ring),
            .stored_bytes = bytes,
            .bytes = bytes,
            .cycles = platform::cycle_counter(),
            .unix_ns = steady_unix_ns(),
            .dropped = has_ring ? recording_.rings.head(ring).dropped.load(relaxed) : 0,
            .check = 0};
        std::uint64_t words[7];
        std::memcpy(words, &header, sizeof words);
        header.check = trace_check(words);
        return output_.append({&header, sizeof header}, {data, bytes});
    }
    // A full disk stops the recording and nothing else.
    void stop() noexcept {
        if (events::recorder_hooks.record.exchange(nullptr, relaxed) == nullptr) return;
        give_up_recording();
        platform::say(
            "recording into '%s' ended: it accepts no more data; what is in it can be read",
            output_.path());
    }

    Recording& recording_;
    platform::TraceOutput output_;
    std::atomic<bool> writes_[ring_count] = {};  // set by the thread that writes the ring out
    std::uint64_t names_written_ = 0;            // under mutex_, like the next
    std::uint64_t modules_written_ = 0;
};

}  // namespace tensorpool::trace
