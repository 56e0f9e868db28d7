// A recording into a file: the thread whose ring is full writes it out, raw.

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>

#include "platform/cycle_counter.hpp"
#include "platform/fail.hpp"
#include "trace/recorder.hpp"

namespace tensorpool::trace {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

}  // namespace

// Whoever ends the process writes out the rings of all threads.
bool Recorder::claim_writing(std::size_t ring) noexcept {
    return !writes_[ring].exchange(true, std::memory_order_acquire);
}

bool Recorder::write_out(std::size_t ring) noexcept {
    return claim_writing(ring) && write_out_claimed(ring);
}

// At exit: a thread that writes its ring out meanwhile gets a moment to end that. Not for ever: it
// may be this one, where a signal ends the process.
bool Recorder::write_out_or_leave(std::size_t ring) noexcept {
    constexpr unsigned most_waits = 10'000;
    for (unsigned waits = 0; !claim_writing(ring); ++waits) {
        if (waits == most_waits) return true;
        std::this_thread::yield();
    }
    return write_out_claimed(ring);
}

// Of a ring the control, which is this process's own then, has what was written out.
bool Recorder::write_out_claimed(std::size_t ring) noexcept {
    const RingHead& head = rings_.head(ring);
    Counter& tail = control_.load(relaxed)->tails[ring];
    bool done = write_names();
    for (std::uint64_t from = tail.load(relaxed),
                       until = head.written.load(std::memory_order_acquire);
         done && from != until;) {
        const std::uint64_t begin = from % ring_entries;
        const std::uint64_t count = std::min(until - from, ring_entries - begin);
        done = write_chunk(TraceChunkKind::entries, ring, rings_.entries(ring) + begin,
                           count * sizeof(TraceEntry));
        from += count;
        if (done) tail.store(from, relaxed);
    }
    writes_[ring].store(false, std::memory_order_release);
    if (!done) stop_writing();
    return done;
}

// What numbers stand for goes before the entries that have them.
bool Recorder::write_names() noexcept {
    const std::lock_guard guard(output_mutex_);
    const std::uint64_t names = rings_.header().names.load(std::memory_order_acquire);
    const std::uint64_t modules = rings_.header().modules.load(std::memory_order_acquire);
    if (names != names_written_ &&
        !write_chunk(TraceChunkKind::names, 0, rings_.names() + names_written_,
                     (names - names_written_) * sizeof(TraceName))) {
        return false;
    }
    names_written_ = names;
    if (modules != modules_written_ &&
        !write_chunk(TraceChunkKind::modules, 0, rings_.modules() + modules_written_,
                     (modules - modules_written_) * sizeof(TraceModule))) {
        return false;
    }
    modules_written_ = modules;
    return true;
}

bool Recorder::write_chunk(TraceChunkKind kind, std::size_t ring, const void* data,
                           std::size_t bytes) noexcept {
    const bool has_ring = kind == TraceChunkKind::entries;
    TraceChunkHeader header{.magic = trace_chunk_magic,
                            .kind = kind,
                            .compression = TraceCompression::none,
                            .process = static_cast<std::uint32_t>(rings_.header().process.process),
                            .ring = static_cast<std::uint32_t>(ring),
                            .stored_bytes = bytes,
                            .bytes = bytes,
                            .cycles = platform::cycle_counter(),
                            .unix_ns = platform::wall_clock_ns(),
                            .dropped = has_ring ? rings_.head(ring).dropped.load(relaxed) : 0,
                            .check = 0};
    std::uint64_t words[7];
    std::memcpy(words, &header, sizeof words);
    header.check = trace_check(words);
    return output_.append({&header, sizeof header}, {data, bytes});
}

// A full disk stops recording and nothing else.
void Recorder::stop_writing() noexcept {
    if (statistics::recorder_hooks.record.exchange(nullptr, relaxed) == nullptr) return;
    give_up();
    platform::say("recording into '%s' ended: it takes no more; what is in it can be read",
                  output_.path());
}

}  // namespace tensorpool::trace
