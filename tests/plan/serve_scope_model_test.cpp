// Random loops whose requests to the global pool are served from a plan, compared with the content
// that each holder wrote.

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/serve_scope.hpp>

#include "support/all_bytes.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;

struct Block {
    unsigned char* begin = nullptr;
    std::size_t bytes = 0;
    unsigned char stamp = 0;
};

// Blocks in use, of all threads.
class Blocks {
public:
    void hold(void* p, std::size_t bytes, unsigned char stamp) {
        std::memset(p, stamp, bytes);
        const std::lock_guard guard(mutex_);
        blocks_.push_back({static_cast<unsigned char*>(p), bytes, stamp});
    }
    // Frees a random block, in one of several ways.
    void free_one(std::mt19937& random) {
        Block block;
        {
            const std::lock_guard guard(mutex_);
            if (blocks_.empty()) return;
            std::swap(blocks_[random() % blocks_.size()], blocks_.back());
            block = blocks_.back();
            blocks_.pop_back();
        }
        check(block);
        MemoryPool& pool = get_global_memory_pool();
        if (random() % 2 == 0) {
            pool.deallocate(block.begin);
        } else {
            pool.deallocate(block.begin, block.bytes);
        }
    }
    void free_all(std::mt19937& random) {
        while (!blocks_.empty()) free_one(random);
    }

private:
    static void check(const Block& block) {
        ASSERT_TRUE(testing::all_bytes_are(block.stamp, block.begin, block.bytes))
            << "another holder wrote into the block";
    }

    std::mutex mutex_;
    std::vector<Block> blocks_;
};

// One iteration of the program: mostly the same requests each time.
void iterate(Blocks& blocks, const std::vector<std::size_t>& sizes, std::mt19937& random,
             bool drifts) {
    unsigned char stamp = static_cast<unsigned char>(random());
    for (std::size_t bytes : sizes) {
        if (drifts && random() % 8 == 0) continue;
        if (drifts && random() % 8 == 0) bytes += random() % (100 * kib);
        blocks.hold(get_global_memory_pool().allocate(bytes), bytes, ++stamp);
        if (random() % 3 != 0) blocks.free_one(random);
    }
}

TEST(ServeScopeModel, NoBlockIsOverwritten) {
    for (unsigned seed = 0; seed != 8; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        Blocks blocks;
        {
            PlannedArenaOptions options;
            options.tolerated_misses = 0.3;
            PlannedArena arena(std::move(options));
            std::vector<std::size_t> sizes(20);
            for (std::size_t& bytes : sizes) bytes = 65 * kib + random() % (200 * kib);
            for (int iteration = 0; iteration != 60; ++iteration) {
                const ServeScope serve(arena);
                const bool joins = random() % 4 == 0;
                const auto seed = static_cast<unsigned>(random());
                std::thread other([&blocks, &serve, &sizes, joins, seed] {
                    std::mt19937 its_random(seed);
                    if (!joins) return blocks.free_one(its_random);
                    const JoinServeScope joined(serve);
                    iterate(blocks, sizes, its_random, true);
                });
                iterate(blocks, sizes, random, random() % 2 == 0);
                other.join();
                if (random() % 4 != 0) blocks.free_all(random);
            }
            const PlannedArenaStatistics statistics = arena.statistics();
            EXPECT_GT(statistics.served, 100U);
            EXPECT_GT(statistics.from_pool, 100U);
        }
        blocks.free_all(random);  // the blocks outlive the arena
    }
}

}  // namespace
}  // namespace tensorpool
