#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "blocks/magazine.hpp"
#include "pages/record_arena.hpp"

namespace tensorpool::blocks {

/// One depot's magazines by their numbers, from 1, and what lies below each in a list. A place
/// lives as long as the pool, so that a thread may still look at that of a magazine that ended.
class MagazinePlaces {
public:
    using Number = std::uint32_t;
    static constexpr Number nothing = 0;
    static constexpr unsigned number_bits = 24;

    struct Place {
        Magazine* magazine = nullptr;
        // Relaxed: what was written comes with the top of the list, by release and acquire.
        std::atomic<Number> below = nothing;
    };

    explicit MagazinePlaces(pages::RecordArena& records) noexcept : records_(records) {}

    // REQUIRES, for both: the caller has a lock that all callers of the two share.
    /// Gives the magazine a number. False when the system has no memory.
    bool enter(Magazine& magazine) noexcept;
    /// It lies in no list. Another one gets its number.
    void leave(Magazine& magazine) noexcept;

    Place& operator[](Number number) const noexcept {
        const unsigned bits = bits_of(number);
        return chunks_[bits].load(std::memory_order_relaxed)[number - (Number{1} << bits)];
    }

private:
    // Chunk n has the numbers from 2^n to 2^(n+1) - 1.
    static unsigned bits_of(Number number) noexcept {
        return static_cast<unsigned>(std::bit_width(number)) - 1;
    }
    bool add_chunk() noexcept;

    pages::RecordArena& records_;
    // Relaxed: who knows a number of a chunk got it from one that knew the chunk.
    std::atomic<Place*> chunks_[number_bits] = {};
    Number end_ = 1;           // there is a place for each number below
    Number unused_ = nothing;  // places without a magazine, each below the next
};

/// Magazines on top of each other. Lock-free: one exchange for each call. A thread may stop within
/// one for as long as it likes: beside the number of the topmost magazine stands a tag of 40 bits,
/// which counts those that were taken.
class MagazineStack {
public:
    explicit MagazineStack(const MagazinePlaces& places) noexcept : places_(places) {}

    void push(Magazine& magazine) noexcept {
        const MagazinePlaces::Number number = magazine.number;
        MagazinePlaces::Place& place = places_[number];
        Top top = top_.load(std::memory_order_relaxed);
        do {
            place.below.store(number_of(top), std::memory_order_relaxed);
        } while (!top_.compare_exchange_weak(top, tag_of(top) | number, std::memory_order_release,
                                             std::memory_order_relaxed));
    }
    /// nullptr when there is none.
    Magazine* pop() noexcept {
        Top top = top_.load(std::memory_order_acquire);
        while (number_of(top) != MagazinePlaces::nothing) {
            const MagazinePlaces::Place& place = places_[number_of(top)];
            const Top next =
                (tag_of(top) + one_taken) | place.below.load(std::memory_order_relaxed);
            if (top_.compare_exchange_weak(top, next, std::memory_order_acquire,
                                           std::memory_order_acquire)) {
                return place.magazine;
            }
        }
        return nullptr;
    }

private:
    using Top = std::uint64_t;
    static constexpr Top one_taken = Top{1} << MagazinePlaces::number_bits;

    static MagazinePlaces::Number number_of(Top top) noexcept {
        return static_cast<MagazinePlaces::Number>(top & (one_taken - 1));
    }
    static Top tag_of(Top top) noexcept { return top & ~(one_taken - 1); }

    const MagazinePlaces& places_;
    std::atomic<Top> top_ = 0;
};

}  // namespace tensorpool::blocks
