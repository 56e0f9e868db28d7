#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <boost/intrusive/list.hpp>

#include <tensorpool/device/backend.hpp>

#include "device/caching/blocks/block.hpp"
#include "device/caching/blocks/growth_history.hpp"
#include "device/caching/blocks/slab.hpp"
#include "device/caching/streams/stream_marks.hpp"
#include "statistics/metrics/device_metrics.hpp"

namespace tensorpool::device {

struct ScalarPage;

/// For some ten instructions at a time. Taken by one exchange, given back by a plain store.
class SpinLock {
public:
    void lock() noexcept {
        // Acquire pairs with the release below: what the last holder wrote is seen.
        while (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]] wait();
    }
    void unlock() noexcept { taken_.store(false, std::memory_order_release); }

private:
    /// Until it looks free. Out of line: a call here would cost the fast path registers.
    void wait() const noexcept;

    std::atomic<bool> taken_ = false;
};

/// One stream's part of an allocator: bins of blocks that were freed lately, under a lock of their
/// own, and everything slower under the allocator's. A capture has one for each stream of its own.
/// Lives as long as the allocator; whose stream ended serves the next one.
class alignas(64) StreamCache {
public:
    StreamCache(StreamHandle stream, std::uint64_t capture) noexcept : capture_(capture) {
        memory.queue.stream = stream;
    }
    StreamCache(const StreamCache&) = delete;
    StreamCache& operator=(const StreamCache&) = delete;

    /// The block of exactly this rounded size that was freed last; nullptr if there is none near
    /// the top of its bin.
    Block* take(std::size_t rounded, std::size_t requested) noexcept {
        const std::lock_guard guard(lock_);
        Block** place = &bins_[bin_of(rounded)];
        for (unsigned looks = 0; *place != nullptr && looks < max_looks; ++looks) {
            Block* const block = *place;
            if (block->key == rounded) {
                *place = block->link;
                count_hit(*block, requested);
                return block;
            }
            place = &block->link;
        }
        return nullptr;
    }

    enum class Put : std::uint8_t { parked, elsewhere, refused };
    /// Parks a block in use. `elsewhere`: it is another stream's by now; `refused`: it is not in
    /// use, or other streams use it too.
    Put put(Block& block) noexcept {
        const std::lock_guard guard(lock_);
        if (block.home.load(std::memory_order_relaxed) != this) [[unlikely]]
            return Put::elsewhere;
        if (!block.is(BlockState::in_use)) [[unlikely]]
            return Put::refused;
        count_free(block.requested, block.bytes);
        park(block);
        return Put::parked;
    }

    // REQUIRES, of what follows up to `take_parked`: the stream's lock is held.
    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept { lock_.unlock(); }

    /// A block out of the sets is a caller's.
    void count_new(Block& block, std::size_t requested) noexcept {
        block.requested = requested;
        block.set(BlockState::in_use);
        count_allocation(requested, block.bytes);
    }
    void count_allocation(std::size_t requested, std::size_t bytes) noexcept {
        statistics::DeviceStreamCounters& counters = *counters_;
        detail::add(counters.allocations, 1);
        detail::add(counters.requested_bytes, requested);
        detail::add(counters.allocated_bytes, bytes);
    }
    void count_free(std::size_t requested, std::size_t bytes) noexcept {
        statistics::DeviceStreamCounters& counters = *counters_;
        detail::add_release(counters.deallocations, 1);
        detail::add_release(counters.deallocated_bytes, bytes);
        detail::add_release(counters.deallocated_requested_bytes, requested);
    }
    void park(Block& block) noexcept {
        block.set(BlockState::parked);
        detail::add(counters_->parked_bytes, block.bytes);
        Block*& bin = bins_[bin_of(block.key)];
        block.link = bin;
        bin = &block;
    }

    /// All that is parked, as a list by `link`, marked taken. REQUIRES: as above.
    Block* take_parked() noexcept;
    /// The same. Takes the lock.
    Block* take_all() noexcept {
        const std::lock_guard guard(lock_);
        return take_parked();
    }

    StreamHandle stream() const noexcept { return memory.queue.stream; }
    /// 0: none.
    std::uint64_t capture() const noexcept { return capture_; }

    // Under the allocator's lock -----------------------------------------------------------------

    struct Memory {
        FreeSet free[pool_count];
        // Of each set: how often it was searched. A free block's age is how many of these came
        // after it.
        std::uint64_t searches[pool_count] = {};
        SlabList slabs;
        StreamMarks marks;
        GrowthHistory growths;
        StreamQueue queue;              // freed blocks that wait for this stream
        ScalarPage* pages = nullptr;    // with a free place
        bool growing[pool_count] = {};  // some thread gets memory for this
        bool ended = false;
    };
    Memory memory;

    void set_counters(statistics::DeviceStreamCounters* counters) noexcept { counters_ = counters; }
    statistics::DeviceStreamCounters* counters() const noexcept { return counters_; }
    void begin_again(StreamHandle stream, std::uint64_t capture) noexcept {
        memory.queue.stream = stream;
        capture_ = capture;
    }

private:
    static constexpr std::size_t bin_count = 256;
    // Of blocks of other sizes in the same bin. Beyond them a block is found by its set.
    static constexpr unsigned max_looks = 16;

    static std::size_t bin_of(std::size_t rounded) noexcept {
        // By the golden ratio: neighbouring sizes, and powers of two, fall into different bins.
        return static_cast<std::size_t>((rounded / small_grain) * 0x9e3779b97f4a7c15u >> 56);
    }

    void count_hit(Block& block, std::size_t requested) noexcept {
        block.requested = requested;
        block.set(BlockState::in_use);
        count_allocation(requested, block.bytes);
        detail::add(counters_->parked_hits, 1);
        detail::add(counters_->parked_bytes, 0 - block.bytes);
    }

    SpinLock lock_;
    std::uint64_t capture_;
    statistics::DeviceStreamCounters* counters_ = nullptr;  // in lines of their own
    Block* bins_[bin_count] = {};
};

}  // namespace tensorpool::device
