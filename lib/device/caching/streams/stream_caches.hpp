#pragma once

#include "device/caching/scalars.hpp"

namespace tensorpool::device {

/// The caches of streams: one for each stream, and one for each stream of a capture. A cache lives
/// until the allocator is destroyed; the cache of a released capture serves a later one.
class StreamCaches {
public:
    StreamCaches(AllocatorState& state, FreeBlocks& free, Scalars& scalars) noexcept
        : state_(state), free_(free), scalars_(scalars) {}

    /// Returns the stream's cache and makes it if there is none. Throws std::bad_alloc.
    StreamCache& of(StreamHandle stream, std::uint64_t capture);
    /// Like `of`, for a stream that the caller names, so that it exists. A new stream under the
    /// handle of a former one gets a new cache.
    StreamCache& of_caller(StreamHandle stream, std::uint64_t capture);

    // Dead caches: of streams that their owners destroyed without `end_stream`, and of released
    // pools. Work may use their memory until the device was waited for.

    bool has_dead() const noexcept { return dead_ != nullptr; }
    /// Takes the list of dead caches, by `next_dead`.
    StreamCache* take_dead() noexcept { return std::exchange(dead_, nullptr); }
    void put_back_dead(StreamCache* list) noexcept;
    /// Makes the caches that `end_dead` moves memory of pools to. Throws std::bad_alloc.
    void prepare_end_of_dead();
    /// Moves the memory of a list of dead caches: that of pools to the streams that used it, whose
    /// blocks may still be in use, and that of dead streams to `to`. REQUIRES: the device was
    /// waited for since the list was taken, and since `prepare_end_of_dead`.
    void end_dead(StreamCache* list, StreamCache& to) noexcept;
    /// Makes the caches of a released pool dead.
    void release_pool(std::uint64_t number) noexcept;

    /// Waits for the stream's work, and moves its memory to the default stream.
    void end_stream(StreamHandle stream);
    bool has_capture(std::uint64_t id) const noexcept;
    /// Ends a capture whose work is done, and moves its memory to its streams. Throws
    /// std::bad_alloc.
    void end_capture(std::uint64_t id);

private:
    StreamCache& make(StreamHandle stream, std::uint64_t capture);
    StreamCache& replace(StreamCache& dead);
    void find_ended_threads() noexcept;
    void bury(StreamCache& cache) noexcept;
    void move_all(StreamCache& from, StreamCache& to) noexcept;
    void retire(StreamCache& cache) noexcept;
    void retire_into(StreamCache& cache, StreamCache& to) noexcept;
    void end_captures_of(StreamHandle stream) noexcept;

    AllocatorState& state_;
    FreeBlocks& free_;
    Scalars& scalars_;
    std::vector<StreamCache*> spare_;  // caches of released captures and of dead streams
    StreamCache* dead_ = nullptr;
};

}  // namespace tensorpool::device
