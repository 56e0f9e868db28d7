#pragma once

#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "arena/arena_test.hpp"
#include "base/alignment.hpp"
#include "pages/random.hpp"

namespace tensorpool::testing {

struct Block {
    std::byte* at;
    std::size_t bytes;
    std::uint64_t seed;
};
using Blocks = std::vector<Block>;

inline std::size_t rounded(const Block& block) {
    return base::align_up(block.bytes, 64);
}

/// Returns the blocks of all threads by address. Fails if two blocks overlap.
inline Blocks in_order(const std::vector<Blocks>& of_threads) {
    Blocks all;
    for (const Blocks& blocks : of_threads) all.insert(all.end(), blocks.begin(), blocks.end());
    std::sort(all.begin(), all.end(), [](const Block& a, const Block& b) { return a.at < b.at; });
    for (std::size_t i = 1; i < all.size(); ++i) {
        EXPECT_LE(all[i - 1].at + rounded(all[i - 1]), all[i].at) << "two blocks overlap";
    }
    return all;
}

inline std::size_t sum_of(const Blocks& blocks) {
    std::size_t sum = 0;
    for (const Block& block : blocks) sum += rounded(block);
    return sum;
}

inline std::size_t wrong_in(const Blocks& blocks) {
    return static_cast<std::size_t>(std::count_if(blocks.begin(), blocks.end(), [](const Block& b) {
        return !holds(b.at, b.bytes, b.seed);
    }));
}

/// Runs `work(number)` on `count` threads that start together, and waits for them.
template <class Work>
void on_threads(unsigned count, Work work) {
    std::barrier start(static_cast<std::ptrdiff_t>(count));
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < count; ++number) {
        threads.emplace_back([&, number] {
            start.arrive_and_wait();
            work(number);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

/// Allocates by a random function. None of them adds padding at an alignment of 64 bytes.
inline std::byte* allocate_somehow(Arena& arena, std::size_t bytes, Random& random) {
    if (random.one_in(3)) return static_cast<std::byte*>(arena.try_allocate(bytes));
    try {
        return static_cast<std::byte*>(arena.allocate(bytes, std::size_t{1} << random.below(7)));
    } catch (const AllocationError&) {
        return nullptr;
    }
}

inline Block block_of(Arena& arena, std::size_t bytes, Random& random, std::uint64_t seed) {
    const Block block{allocate_somehow(arena, bytes, random), bytes, seed};
    if (block.at != nullptr) write_pattern(block.at, bytes, seed);
    return block;
}

}  // namespace tensorpool::testing
