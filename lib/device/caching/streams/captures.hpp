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
    std::uint64_t of(StreamHandle stream) const noexcept {
        const bool known =
            (state_.gate.load(std::memory_order_relaxed) & AllocatorState::captures) != 0;
        return known || state_.is_capture_under_way() ? look(stream) : 0;
    }
    /// Like `of`, for a slow path whose caller names the stream: always asks.
    std::uint64_t look(StreamHandle stream) const noexcept {
        const std::uint64_t pool = pool_of(stream);
        if (pool != 0 || !state_.abilities.graph_capture) return pool;
        return state_.calls.is_captured(stream) ? state_.calls.capture_of(stream) : 0;
    }
    /// Remembers what `look` returned for a stream. Throws std::bad_alloc.
    void remember(StreamHandle stream, std::uint64_t capture) {
        forget(stream);
        if (capture == 0 || capture >= first_pool ||
            state_.backend.owns_stream(state_.device, stream)) {
            return;
        }
        found_.push_back({stream, capture});
        set_gate();
    }
    /// Forgets the captures found in a stream that ends.
    void forget(StreamHandle stream) noexcept {
        if (found_.empty()) return;
        std::erase_if(found_, [stream](const Found& one) { return one.stream == stream; });
        set_gate();
    }
    /// Forgets a capture whose graph was destroyed.
    void forget_capture(std::uint64_t id) noexcept {
        std::erase_if(found_, [id](const Found& one) { return one.capture == id; });
        set_gate();
    }
    /// Whether a capture is known, so that the device may not be waited for.
    bool is_any_active() const noexcept {
        return state_.is_capture_under_way() || announced_ != 0 || !found_.empty() ||
               !pools_in_use_.empty();
    }

    /// A capture begins or ends, as announced by the program.
    void begin() noexcept {
        ++announced_;
        set_gate();
    }
    void end() noexcept {
        if (announced_ != 0) --announced_;
        if (announced_ == 0) found_.clear();
        set_gate();
    }

    /// Work of the streams for which `takes_part` returns true uses the memory of the pool from now
    /// on. Throws std::bad_alloc, and then changes nothing.
    void begin_pool(CapturePool pool, std::function<bool(StreamHandle)> takes_part) {
        const auto known =
            pools_.try_emplace(pool, KnownPool{first_pool + last_pool_ + 1, 0}).first;
        try {
            const std::lock_guard guard(pools_mutex_);
            pools_in_use_.push_back({pool, known->second.number, std::move(takes_part)});
        } catch (...) {
            if (known->second.uses == 0) pools_.erase(known);
            throw;
        }
        if (known->second.uses++ == 0) ++last_pool_;
        set_gate();
    }
    /// Ends the latest `begin_pool` of this pool. Returns its number; 0 if there is none.
    std::uint64_t end_pool(CapturePool pool) noexcept {
        std::uint64_t number = 0;
        {
            const std::lock_guard guard(pools_mutex_);
            const auto found = std::find_if(pools_in_use_.rbegin(), pools_in_use_.rend(),
                                            [pool](const auto& used) { return used.pool == pool; });
            if (found == pools_in_use_.rend()) return 0;
            number = found->number;
            pools_in_use_.erase(std::next(found).base());
        }
        set_gate();
        return number;
    }
    /// Whether the pool with this number is still used by a graph.
    bool knows(std::uint64_t pool) const noexcept {
        return std::any_of(pools_.begin(), pools_.end(),
                           [pool](const auto& known) { return known.second.number == pool; });
    }
    /// Whether the number is one of a pool, or of no capture.
    static bool is_pool(std::uint64_t number) noexcept { return number >= first_pool; }
    /// Gives up one use of the pool. Returns its number if that was the last, and otherwise 0.
    std::uint64_t give_up_pool(CapturePool pool) noexcept {
        const auto known = pools_.find(pool);
        if (known == pools_.end() || --known->second.uses != 0) return 0;
        const std::uint64_t number = known->second.number;
        pools_.erase(known);
        return number;
    }

    /// Opens the fast path, or closes it if something must see each call.
    void set_gate() noexcept {
        const bool asks = announced_ != 0 || !found_.empty() || !pools_in_use_.empty();
        const unsigned gate = (state_.watch.wants_all() ? unsigned{AllocatorState::watched} : 0U) |
                              (asks ? unsigned{AllocatorState::captures} : 0U) |
                              (state_.asleep ? unsigned{AllocatorState::sleeping} : 0U);
        state_.gate.store(gate, std::memory_order_relaxed);
    }

    /// Moves the smallest reserved slab that fits to the stream. Returns false if there is none.
    /// Throws std::bad_alloc.
    bool take_reserved(StreamCache& cache, const Request& request) {
        Slab* best = nullptr;
        for (Slab& slab : reserved_.memory.slabs) {
            const bool fits = slab.bytes >= request.rounded;
            if (fits && (best == nullptr || slab.bytes < best->bytes)) best = &slab;
        }
        if (best == nullptr) return false;
        state_.heap.move_slab(*best, cache, request.pool);
        return true;
    }
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

    std::uint64_t pool_of(StreamHandle stream) const noexcept {
        const std::lock_guard guard(pools_mutex_);
        const auto found = std::find_if(
            pools_in_use_.rbegin(), pools_in_use_.rend(),
            [stream](const auto& used) { return used.takes_part(StreamCalls::handle_of(stream)); });
        return found != pools_in_use_.rend() ? found->number : 0;
    }

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
