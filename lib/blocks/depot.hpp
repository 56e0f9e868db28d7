#pragma once

// By default, Boost.Lockfree packs a pointer and a tag of 16 bits into one word. Without that
// compression the tag has 64 bits, and Boost.Atomic exchanges both words at once (cmpxchg16b,
// casp). The thread sanitizer supports only the standard library's atomics, so Boost.Atomic is not
// used with it.
#include <boost/lockfree/detail/prefix.hpp>
#undef BOOST_LOCKFREE_PTR_COMPRESSION
#ifndef __SANITIZE_THREAD__
#define BOOST_LOCKFREE_FORCE_BOOST_ATOMIC
#ifdef __x86_64__
// Every x86-64 processor since 2006 has the instruction; gcc reports it only with -mcx16.
#define BOOST_ATOMIC_DETAIL_X86_HAS_CMPXCHG16B 1
#endif
#endif

// The only constructor that takes an allocator asserts, in debug builds, that the capacity is known
// at compile time. Without that assertion it makes a stack that grows, as is needed here.
#define BOOST_DISABLE_ASSERTS
#include <boost/lockfree/stack.hpp>
#undef BOOST_DISABLE_ASSERTS

#include "blocks/magazine.hpp"
#include "pages/heap/shards.hpp"

namespace tensorpool::blocks {

/// An allocator that lets Boost.Lockfree take its nodes from the pool's records. It never frees.
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
        // The stack treats a free node as two words that it exchanges at once, so a node needs the
        // alignment of two words even if T needs less.
        constexpr std::size_t alignment = std::max(alignof(T), 2 * sizeof(void*));
        void* const memory = records->allocate(count * sizeof(T), alignment);
        if (memory == nullptr) throw std::bad_alloc();
        return static_cast<T*>(memory);
    }
    void deallocate(T*, std::size_t) noexcept {}
    bool operator==(const RecordAllocator& other) const noexcept {
        return records == other.records;
    }

    pages::RecordArena* records;
};

/// A lock-free stack whose nodes live as long as the records.
template <class T>
using RecordStack = boost::lockfree::stack<T, boost::lockfree::allocator<RecordAllocator<T>>>;

static_assert(sizeof(boost::lockfree::detail::tagged_ptr<char>::tag_t) * 8 >= 40,
              "a tag of 16 bits wraps around within milliseconds");

/// The magazines of one depot by number, from 1, and for each the number of the magazine below it
/// in the list. Entries live as long as the pool, so that a thread may still read the entry of a
/// magazine that was destroyed.
class MagazineTable {
public:
    using Number = std::uint32_t;
    static constexpr Number nothing = 0;
    static constexpr unsigned number_bits = 24;

    struct Entry {
        Magazine* magazine = nullptr;
        // Relaxed: release and acquire of the top of the list order it.
        std::atomic<Number> below = nothing;
    };

    explicit MagazineTable(pages::RecordArena& records) noexcept : records_(records) {}

    // REQUIRES, for both: all callers of the two hold one lock.
    /// Gives the magazine a number. Returns false if the system has no memory.
    bool enter(Magazine& magazine) noexcept;
    /// Releases the number of a magazine that lies in no list, for reuse.
    void leave(Magazine& magazine) noexcept {
        (*this)[magazine.number].below.store(unused_, std::memory_order_relaxed);
        unused_ = std::exchange(magazine.number, nothing);
    }

    Entry& operator[](Number number) const noexcept {
        const unsigned bits = bits_of(number);
        return chunks_[bits].load(std::memory_order_relaxed)[number - (Number{1} << bits)];
    }

private:
    // Chunk n holds the numbers from 2^n to 2^(n+1) - 1.
    static unsigned bits_of(Number number) noexcept {
        return static_cast<unsigned>(std::bit_width(number)) - 1;
    }
    bool add_chunk() noexcept;

    pages::RecordArena& records_;
    // Relaxed: a thread that has a number got it, by acquire, from a thread that saw its chunk.
    std::atomic<Entry*> chunks_[number_bits] = {};
    Number end_ = 1;           // there is an entry for each smaller number
    Number unused_ = nothing;  // entries without a magazine, each below the next
};

/// A stack of magazines. Lock-free: one compare-and-exchange for each call. A thread may be
/// suspended inside a call for any time: the word with the number of the topmost magazine also has
/// a tag of 40 bits, which counts the magazines that were taken.
class MagazineStack {
public:
    explicit MagazineStack(const MagazineTable& table) noexcept : table_(table) {}

    void push(Magazine& magazine) noexcept {
        const MagazineTable::Number number = magazine.number;
        MagazineTable::Entry& entry = table_[number];
        Top top = top_.load(std::memory_order_relaxed);
        do {
            entry.below.store(number_of(top), std::memory_order_relaxed);
        } while (!top_.compare_exchange_weak(top, tag_of(top) | number, std::memory_order_release,
                                             std::memory_order_relaxed));
    }
    /// Takes the topmost magazine. Returns nullptr if the stack is empty.
    Magazine* pop() noexcept {
        Top top = top_.load(std::memory_order_acquire);
        while (number_of(top) != MagazineTable::nothing) {
            const MagazineTable::Entry& entry = table_[number_of(top)];
            const Top next =
                (tag_of(top) + one_taken) | entry.below.load(std::memory_order_relaxed);
            if (top_.compare_exchange_weak(top, next, std::memory_order_acquire,
                                           std::memory_order_acquire)) {
                return entry.magazine;
            }
        }
        return nullptr;
    }

private:
    using Top = std::uint64_t;
    static constexpr Top one_taken = Top{1} << MagazineTable::number_bits;

    static MagazineTable::Number number_of(Top top) noexcept {
        return static_cast<MagazineTable::Number>(top & (one_taken - 1));
    }
    static Top tag_of(Top top) noexcept { return top & ~(one_taken - 1); }

    const MagazineTable& table_;
    std::atomic<Top> top_ = 0;
};

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
    Magazine* take_empty() noexcept;
    void give_full(Magazine& magazine) noexcept {
        // Counted before another thread can take it, so that the count never becomes negative.
        blocks_.fetch_add(magazine.count, std::memory_order_relaxed);
        full_.push(magazine);
    }
    /// Returns false if this shard has no node for the magazine.
    bool give_empty(Magazine& magazine) noexcept;
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
    void leave(Magazine& magazine) noexcept {
        table_.leave(magazine);
        --entered_;
    }

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
    std::size_t blocks() const noexcept {
        std::size_t sum = 0;
        shards_.for_each([&](const DepotShard& shard) { sum += shard.blocks(); });
        return sum;
    }
    DepotShard& own_shard() noexcept {
        DepotShard* const own = shards_.find(pages::current_shard());
        return own != nullptr ? *own : make_own_shard();
    }
    template <class Function>
    void for_each_shard(Function function) noexcept {
        shards_.for_each(function);
    }

private:
    DepotShard& make_own_shard() noexcept;
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
