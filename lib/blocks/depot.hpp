#pragma once

// The only constructor that takes an allocator asserts a capacity that is known at compile time, in
// builds for debugging; without one it makes a stack that grows, which is what we want.
#define BOOST_DISABLE_ASSERTS
#include <boost/lockfree/stack.hpp>
#undef BOOST_DISABLE_ASSERTS
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "blocks/magazine.hpp"
#include "pages/record_arena.hpp"

namespace tensorpool::blocks {

/// Lets Boost.Lockfree take its nodes from the pool's records. Nodes live as long as the pool.
template <class T>
struct RecordAllocator {
    using value_type = T;
    template <class U>
    struct rebind {
        using other = RecordAllocator<U>;
    };

    explicit RecordAllocator(pages::RecordArena& arena) noexcept : records(&arena) {}
    template <class U>
    RecordAllocator(const RecordAllocator<U>& other) noexcept : records(other.records) {}

    T* allocate(std::size_t count) {
        void* const memory = records->allocate(count * sizeof(T), alignof(T));
        if (memory == nullptr) throw std::bad_alloc();
        return static_cast<T*>(memory);
    }
    void deallocate(T*, std::size_t) noexcept {}
    bool operator==(const RecordAllocator& other) const noexcept {
        return records == other.records;
    }

    pages::RecordArena* records;
};

/// A bucket's central lists: magazines with blocks and magazines without. Lock-free. Boost's stack
/// tags its pointers with 16 bits against ABA: an exchange would have to sleep through a multiple
/// of 65,536 others of the same node to go wrong.
class Depot {
public:
    explicit Depot(pages::RecordArena& records);

    /// Room for one more magazine in either list. False when the system has no memory. Called
    /// before a new magazine is given: then giving cannot fail.
    bool make_room() noexcept;

    Magazine* take_full() noexcept {
        Magazine* const magazine = take(full_);
        if (magazine != nullptr) count_taken(magazine->count);
        return magazine;
    }
    Magazine* take_empty() noexcept { return take(empty_); }
    void give_full(Magazine& magazine) noexcept {
        // Before another thread can take it: the figure never reads negative.
        blocks_.fetch_add(magazine.count, std::memory_order_relaxed);
        give(full_, magazine);
    }
    void give_empty(Magazine& magazine) noexcept { give(empty_, magazine); }

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
    using Stack =
        boost::lockfree::stack<Magazine*, boost::lockfree::allocator<RecordAllocator<Magazine*>>>;

    static Magazine* take(Stack& stack) noexcept {
        Magazine* magazine = nullptr;
        return stack.pop(magazine) ? magazine : nullptr;
    }
    static void give(Stack& stack, Magazine& magazine) noexcept {
        if (!stack.bounded_push(&magazine)) [[unlikely]]
            no_node_for(magazine);
    }
    [[noreturn]] static void no_node_for(const Magazine& magazine) noexcept;
    void count_taken(std::size_t count) noexcept {
        const std::size_t left = blocks_.fetch_sub(count, std::memory_order_relaxed) - count;
        // Where threads cross, one of them may not be seen: a little more goes home than was idle.
        if (left < least_.load(std::memory_order_relaxed)) {
            least_.store(left, std::memory_order_relaxed);
        }
        taken_.store(taken() + count, std::memory_order_relaxed);
    }

    Stack full_;
    Stack empty_;
    // Relaxed: figures that order nothing.
    std::atomic<std::size_t> blocks_ = 0;
    std::atomic<std::size_t> least_ = 0;
    std::atomic<std::size_t> taken_ = 0;
};

}  // namespace tensorpool::blocks
