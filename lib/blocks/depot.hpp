#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "blocks/magazine.hpp"
#include "blocks/magazine_stack.hpp"
#include "blocks/record_stack.hpp"
#include "pages/record_arena.hpp"

namespace tensorpool::blocks {

/// A bucket's two central lists: magazines with blocks and magazines without. Lock-free. A thread
/// may be suspended inside an exchange for any time: tags detect that other threads changed the
/// list in between.
class Depot {
public:
    explicit Depot(pages::RecordArena& records);

    // REQUIRES, for both: all callers of the two hold one lock.
    /// Reserves room for a new magazine in both lists, so that `give_full` and `give_empty` cannot
    /// fail. Returns false if the system has no memory.
    bool enter(Magazine& magazine) noexcept;
    /// Releases the room of a magazine that is about to be destroyed and lies in no list.
    void leave(Magazine& magazine) noexcept;

    /// Takes a magazine with blocks. Returns nullptr if there is none.
    Magazine* take_full() noexcept {
        Magazine* const magazine = full_.pop();
        if (magazine != nullptr) count_taken(magazine->count);
        return magazine;
    }
    /// Takes a magazine without blocks. Returns nullptr if there is none.
    Magazine* take_empty() noexcept {
        Magazine* magazine = nullptr;
        return empty_.pop(magazine) ? magazine : nullptr;
    }
    void give_full(Magazine& magazine) noexcept {
        // Counted before another thread can take it, so that the count never becomes negative.
        blocks_.fetch_add(magazine.count, std::memory_order_relaxed);
        full_.push(magazine);
    }
    void give_empty(Magazine& magazine) noexcept {
        if (!empty_.bounded_push(&magazine)) [[unlikely]]
            no_room_for(magazine);
    }

    /// The number of blocks in all magazines of the depot.
    std::size_t blocks() const noexcept { return blocks_.load(std::memory_order_relaxed); }
    /// The minimum of `blocks` since the period began: blocks that no thread needed in that time.
    std::size_t unneeded() const noexcept {
        return std::min(blocks(), min_blocks_.load(std::memory_order_relaxed));
    }
    /// The number of blocks that were taken since the period began.
    std::size_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
    void begin_period() noexcept {
        min_blocks_.store(blocks(), std::memory_order_relaxed);
        taken_.store(0, std::memory_order_relaxed);
    }

private:
    [[noreturn]] static void no_room_for(const Magazine& magazine) noexcept;
    void count_taken(std::size_t count) noexcept {
        const std::size_t left = blocks_.fetch_sub(count, std::memory_order_relaxed) - count;
        // If two threads get here at once, one minimum may be lost. Then slightly more blocks are
        // returned to their spans than were idle.
        if (left < min_blocks_.load(std::memory_order_relaxed)) {
            min_blocks_.store(left, std::memory_order_relaxed);
        }
        taken_.store(taken() + count, std::memory_order_relaxed);
    }

    MagazineTable table_;
    MagazineStack full_;
    RecordStack<Magazine*> empty_;
    std::size_t entered_ = 0;
    std::size_t nodes_ = 0;  // nodes of `empty_`; never less than `entered_`
    // Relaxed: counts that order nothing.
    std::atomic<std::size_t> blocks_ = 0;
    std::atomic<std::size_t> min_blocks_ = 0;
    std::atomic<std::size_t> taken_ = 0;
};

}  // namespace tensorpool::blocks
