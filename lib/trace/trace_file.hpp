#pragma once

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
    bool open(const char* path) noexcept;
    bool is_open() const noexcept { return output_.is_open(); }
    /// Writes one ring out. Returns false if another thread is doing so, or if the file accepts no
    /// more data, which ends the recording.
    bool write_out(std::size_t ring) noexcept { return claim(ring) && write_claimed(ring); }
    /// Writes all rings out and marks the end of the recording.
    void finish() noexcept;

    /// Closes the file in the child of a fork, which does not write to it. REQUIRES: locked.
    void forget() noexcept;

private:
    bool claim(std::size_t ring) noexcept {
        return !writes_[ring].exchange(true, std::memory_order_acquire);
    }
    bool write_out_or_leave(std::size_t ring) noexcept;
    bool write_claimed(std::size_t ring) noexcept;
    bool write_names() noexcept;
    bool write_chunk(TraceChunkKind kind, std::size_t ring, const void* data,
                     std::size_t bytes) noexcept;
    void stop() noexcept;

    Recording& recording_;
    platform::TraceOutput output_;
    std::atomic<bool> writes_[ring_count] = {};  // set by the thread that writes the ring out
    std::uint64_t names_written_ = 0;            // under mutex_, like the next
    std::uint64_t modules_written_ = 0;
};

}  // namespace tensorpool::trace
