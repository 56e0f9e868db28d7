#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "blocks/magazine.hpp"
#include "pages/record_arena.hpp"

namespace tensorpool::blocks {

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
    void leave(Magazine& magazine) noexcept;

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

}  // namespace tensorpool::blocks
