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

/// A bucket's central lists: magazines with blocks and magazines without. Lock-free. A thread may
/// stop within an exchange for as long as it likes: tags tell it that others came meanwhile.
class Depot {
public:
    explicit Depot(pages::RecordArena& records);

    // REQUIRES, for both: the caller has a lock that all callers of the two share.
    /// Makes room for a new magazine in either list. False when the system has no memory. Called
    /// before it is given: then giving cannot fail.
    bool enter(Magazine& magazine) noexcept;
    /// For a magazine that ends; it lies in no list.
    void leave(Magazine& magazine) noexcept;

    Magazine* take_full() noexcept {
        Magazine* const magazine = full_.pop();
        if (magazine != nullptr) count_taken(magazine->count);
        return magazine;
    }
    Magazine* take_empty() noexcept {
        Magazine* magazine = nullptr;
        return empty_.pop(magazine) ? magazine : nullptr;
    }
    void give_full(Magazine& magazine) noexcept {
        // Before another thread can take it: the figure never reads negative.
        blocks_.fetch_add(magazine.count, std::memory_order_relaxed);
        full_.push(magazine);
    }
    void give_empty(Magazine& magazine) noexcept {
        if (!empty_.bounded_push(&magazine)) [[unlikely]]
            no_room_for(magazine);
    }

    /// Blocks in magazines.
    std::size_t blocks() const noexcept { return blocks_.load(std::memory_order_relaxed); }
    /// The least that `blocks` was since the period began: what nobody needed meanwhile.
    std::size_t unneeded() const noexcept {
        return std::min(blocks(), least_.load(std::memory_order_relaxed));
    }
    /// Blocks that were taken since the period began.
    std::size_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
    void begin_period() noexcept {
        least_.store(blocks(), std::memory_order_relaxed);
        taken_.store(0, std::memory_order_relaxed);
    }

private:
    [[noreturn]] static void no_room_for(const Magazine& magazine) noexcept;
    void count_taken(std::size_t count) noexcept {
        const std::size_t left = blocks_.fetch_sub(count, std::memory_order_relaxed) - count;
        // Where threads cross, one of them may not be seen: a little more goes home than was idle.
        if (left < least_.load(std::memory_order_relaxed)) {
            least_.store(left, std::memory_order_relaxed);
        }
        taken_.store(taken() + count, std::memory_order_relaxed);
    }

    MagazinePlaces places_;
    MagazineStack full_;
    RecordStack<Magazine*> empty_;
    std::size_t entered_ = 0;
    std::size_t nodes_ = 0;  // of `empty_`; never less than `entered_`
    // Relaxed: figures that order nothing.
    std::atomic<std::size_t> blocks_ = 0;
    std::atomic<std::size_t> least_ = 0;
    std::atomic<std::size_t> taken_ = 0;
};

}  // namespace tensorpool::blocks
