#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "blocks/magazine.hpp"
#include "blocks/magazine_stack.hpp"
#include "blocks/record_stack.hpp"
#include "pages/heap/shards.hpp"
#include "pages/record_arena.hpp"

namespace tensorpool::blocks {

/// The two central lists of one bucket for one shard: magazines with blocks and magazines without.
/// Lock-free. A thread may be suspended inside an exchange for any time: tags detect that other
/// threads changed the list in between.
class DepotShard {
public:
    DepotShard(const MagazineTable& table, pages::RecordArena& records);

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
    /// Returns false if this shard has no node for the magazine.
    bool give_empty(Magazine& magazine) noexcept { return empty_.bounded_push(&magazine); }
    /// Makes a node for `give_empty`. Returns false if the system has no memory. REQUIRES: the
    /// callers hold one lock.
    bool add_node() noexcept;

    /// The number of blocks in all magazines of this shard.
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
    void count_taken(std::size_t count) noexcept {
        const std::size_t left = blocks_.fetch_sub(count, std::memory_order_relaxed) - count;
        // If two threads get here at once, one minimum may be lost. Then slightly more blocks are
        // returned to their spans than were idle.
        if (left < min_blocks_.load(std::memory_order_relaxed)) {
            min_blocks_.store(left, std::memory_order_relaxed);
        }
        taken_.store(taken() + count, std::memory_order_relaxed);
    }

    MagazineStack full_;
    RecordStack<Magazine*> empty_;
    // Relaxed: counts that order nothing.
    std::atomic<std::size_t> blocks_ = 0;
    std::atomic<std::size_t> min_blocks_ = 0;
    std::atomic<std::size_t> taken_ = 0;
};

/// All magazines of one bucket that no thread holds, divided among shards. A thread gives to its
/// shard, and takes from its shard first. Lock-free.
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
        DepotShard& own = own_shard();
        Magazine* const magazine = own.take_full();
        return magazine != nullptr ? magazine : take_from_others(own, &DepotShard::take_full);
    }
    /// Takes a magazine without blocks. Returns nullptr if there is none.
    Magazine* take_empty() noexcept {
        DepotShard& own = own_shard();
        Magazine* const magazine = own.take_empty();
        return magazine != nullptr ? magazine : take_from_others(own, &DepotShard::take_empty);
    }
    void give_full(Magazine& magazine) noexcept { own_shard().give_full(magazine); }
    void give_empty(Magazine& magazine) noexcept {
        if (!own_shard().give_empty(magazine)) [[unlikely]]
            give_empty_to_others(magazine);
    }

    /// The number of blocks in all magazines of all shards.
    std::size_t blocks() const noexcept;
    DepotShard& own_shard() noexcept;
    template <class Function>
    void for_each_shard(Function function) noexcept {
        shards_.for_each(function);
    }

private:
    Magazine* take_from_others(const DepotShard& own,
                               Magazine* (DepotShard::*take)() noexcept) noexcept;
    void give_empty_to_others(Magazine& magazine) noexcept;

    pages::RecordArena& records_;
    MagazineTable table_;
    pages::PerShard<DepotShard> shards_;
    std::size_t entered_ = 0;
    // Nodes of all shards for `give_empty`; never less than `entered_`. A magazine may be given to
    // another shard than the one that has its node, so some shard always has a free node.
    std::size_t nodes_ = 0;
};

}  // namespace tensorpool::blocks
