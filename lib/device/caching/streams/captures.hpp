#pragma once

#include <cstdint>

#include "device/caching/allocator_state.hpp"

namespace tensorpool::device {

/// Tracks which streams are captured into a graph, and holds memory reserved for such captures. A
/// capture keeps the memory that it uses until `release_capture`.
class Captures {
public:
    explicit Captures(AllocatorState& state) : state_(state), reserved_(nullptr, 0) {}

    /// Returns the capture that the stream is part of, or 0. Any thread, without the lock.
    std::uint64_t of(StreamHandle stream) const noexcept;
    bool is_any_active() const noexcept;

    /// A capture begins or ends, as announced by the program. Needed if the device is not queried.
    void begin() noexcept;
    void end() noexcept;
    /// Opens the fast path, or closes it if something must see each call.
    void set_gate() noexcept;

    /// Moves the smallest reserved slab that fits to the stream. Returns false if there is none.
    /// Throws std::bad_alloc.
    bool take_reserved(StreamCache& cache, const Request& request);
    StreamCache& reserved() noexcept { return reserved_; }
    bool has_slabs_of(const StreamCache& cache) const noexcept {
        return cache.capture() != 0 || &cache == &reserved_;
    }

private:
    AllocatorState& state_;
    StreamCache reserved_;  // holds slabs for later captures
    unsigned announced_ = 0;
};

}  // namespace tensorpool::device
