#pragma once

#include <cstdint>
#include <vector>

#include "device/caching/allocator_state.hpp"
#include "device/caching/free_blocks.hpp"
#include "device/caching/scalars.hpp"

namespace tensorpool::device {

/// The caches of streams, as they come and end: one for each stream, and one for each stream of a
/// capture. A cache stays until the allocator ends; one whose capture was released serves the next.
class StreamCaches {
public:
    StreamCaches(AllocatorState& state, FreeBlocks& free, Scalars& scalars) noexcept
        : state_(state), free_(free), scalars_(scalars) {}

    /// The stream's cache, made where there is none. Throws std::bad_alloc.
    StreamCache& of(StreamHandle stream, std::uint64_t capture);

    /// Ends a stream whose work is done: its memory is the default stream's.
    void end_stream(StreamHandle stream);
    bool has_capture(std::uint64_t id) const noexcept;
    /// Ends a capture whose work is done: its memory is its streams'. Throws std::bad_alloc.
    void end_capture(std::uint64_t id);

private:
    StreamCache& make(StreamHandle stream, std::uint64_t capture);
    void move_all(StreamCache& from, StreamCache& to) noexcept;
    void retire(StreamCache& cache) noexcept;
    void wait_for_uses(StreamCache& cache, StreamHandle stream);
    void forget_uses_by(const StreamCache& cache) noexcept;
    void end_captures_of(StreamHandle stream) noexcept;

    AllocatorState& state_;
    FreeBlocks& free_;
    Scalars& scalars_;
    std::vector<StreamCache*> spare_;  // of captures that were released
};

}  // namespace tensorpool::device
