#pragma once

#include <map>

#include <tensorpool/device/capture_pool.hpp>

#include "device/caching/allocator_state.hpp"

namespace tensorpool::device {

/// Tracks which streams are captured into a graph, and holds memory reserved for such captures. A
/// capture, or a pool that captures share, keeps the memory that it uses until it is released.
///
/// A hit makes no call to the device while no capture is known: none was begun through the backend,
/// none announced, and none found. Slow paths find captures that the program began by other means.
class Captures {
public:
    explicit Captures(AllocatorState& state) : state_(state), reserved_(nullptr, 0) {}

    /// Returns the number of the private memory that serves the stream, that of a pool or of its
    /// capture; 0: none. Asks the device only if a capture is known. Any thread, without the lock.
    std::uint64_t of(StreamHandle stream) const noexcept;
    /// Like `of`, for a slow path whose caller names the stream: always asks.
    std::uint64_t look(StreamHandle stream) const noexcept;
    /// Remembers what `look` returned for a stream. Throws std::bad_alloc.
    void remember(StreamHandle stream, std::uint64_t capture);
    /// Forgets the captures found in a stream that ends.
    void forget(StreamHandle stream) noexcept;
    /// Forgets a capture whose graph was destroyed.
    void forget_capture(std::uint64_t id) noexcept;
    /// Whether a capture is known, so that the device may not be waited for.
    bool is_any_active() const noexcept {
        return state_.is_capture_under_way() || announced_ != 0 || !found_.empty() ||
               !pools_in_use_.empty();
    }

    /// A capture begins or ends, as announced by the program.
    void begin() noexcept;
    void end() noexcept;

    /// Work of the streams for which `takes_part` returns true uses the memory of the pool from now
    /// on. Throws std::bad_alloc, and then changes nothing.
    void begin_pool(CapturePool pool, std::function<bool(StreamHandle)> takes_part);
    /// Ends the latest `begin_pool` of this pool. Returns its number; 0 if there is none.
    std::uint64_t end_pool(CapturePool pool) noexcept;
    /// Whether the pool with this number is still used by a graph.
    bool knows(std::uint64_t pool) const noexcept;
    /// Whether the number is one of a pool, or of no capture.
    static bool is_pool(std::uint64_t number) noexcept { return number >= first_pool; }
    /// Gives up one use of the pool. Returns its number if that was the last, and otherwise 0.
    std::uint64_t give_up_pool(CapturePool pool) noexcept;

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
    // The numbers of pools differ from those of captures, which count up from 1.
    static constexpr std::uint64_t first_pool = std::uint64_t{1} << 63;

    struct Found {
        StreamHandle stream;
        std::uint64_t capture;
    };
    struct KnownPool {
        std::uint64_t number;  // of its private memory
        unsigned uses;
    };
    struct PoolInUse {
        CapturePool pool;
        std::uint64_t number;
        std::function<bool(StreamHandle)> takes_part;
    };

    std::uint64_t pool_of(StreamHandle stream) const noexcept;

    AllocatorState& state_;
    StreamCache reserved_;  // holds slabs for later captures
    unsigned announced_ = 0;
    std::vector<Found> found_;  // begun by other code, found while one was under way
    std::map<CapturePool, KnownPool> pools_;
    std::uint64_t last_pool_ = 0;
    // A leaf lock. Changes are also made under the allocator's lock.
    mutable std::mutex pools_mutex_;
    std::vector<PoolInUse> pools_in_use_;
};

}  // namespace tensorpool::device
