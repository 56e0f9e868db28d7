#pragma once

#include <cstdint>

#include "device/caching/allocator_state.hpp"

namespace tensorpool::device {

/// Which streams are captured into a graph, and memory that was reserved for such captures. Memory
/// that a capture uses stays its own until `release_capture`.
class Captures {
public:
    explicit Captures(AllocatorState& state) : state_(state), reserved_(nullptr, 0) {}

    /// The capture of the calling thread's stream; 0: none. Any thread, without the lock.
    std::uint64_t of(StreamHandle stream) const noexcept;
    bool is_any_active() const noexcept;

    /// Announced by the program where the device is not asked.
    void begin() noexcept;
    void end() noexcept;
    /// Opens or closes the fast path by what wants to know of each call.
    void set_gate() noexcept;

    /// A slab that was reserved, the smallest that will do, is the stream's now. False if there is
    /// none. Throws std::bad_alloc.
    bool take_reserved(StreamCache& cache, const Request& request);
    StreamCache& reserved() noexcept { return reserved_; }
    bool has_slabs_of(const StreamCache& cache) const noexcept {
        return cache.capture() != 0 || &cache == &reserved_;
    }

private:
    AllocatorState& state_;
    StreamCache reserved_;  // holds slabs for captures to come
    unsigned announced_ = 0;
};

}  // namespace tensorpool::device
