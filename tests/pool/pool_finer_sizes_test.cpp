// The finer sizes of the pool behind `malloc`. Each test runs in a process of its own, because the
// global pool is set up once.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <latch>
#include <ranges>
#include <thread>
#include <unordered_map>
#include <vector>

#include <tensorpool/detail/address_range.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_scope.hpp>

#include "base/alignment.hpp"
#include "base/block_sizes.hpp"
#include "blocks/take_back.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool {
namespace {

using detail::GlobalPool;
using testing::holds_in_child;

constexpr std::size_t mib = std::size_t{1} << 20;

std::size_t finest(std::size_t bytes) {
    const base::BlockSize size = base::finest_size(bytes);
    return base::block_bytes(size.series, size.bucket);
}

/// Only without checks, which are the default for debugging, the global pool has finer sizes.
void use_no_checks() {
    ::setenv("TENSORPOOL_CHECKS", "off", 1);
}

/// Allocates as malloc does.
class FinerSizes : public ::testing::Test {
protected:
    FinerSizes() { GlobalPool::serve_malloc(1); }
    static void SetUpTestSuite() { use_no_checks(); }

    static void* allocate(std::size_t bytes) {
        return GlobalPool::try_allocate(bytes, base::finer_alignment).block;
    }
    static void free(void* p) { GlobalPool::deallocate(p); }

    struct Block {
        unsigned char* address;
        std::size_t bytes;
    };
    static Block filled(std::size_t bytes, int with) {
        void* const block = allocate(bytes);
        std::memset(block, with, bytes);
        return {static_cast<unsigned char*>(block), bytes};
    }
    static bool holds(const Block& block, int with) {
        for (std::size_t i = 0; i != block.bytes; ++i) {
            if (block.address[i] != static_cast<unsigned char>(with)) return false;
        }
        return true;
    }

    MemoryPool& pool_ = get_global_memory_pool();
};

/// In a round, two threads allocate `count` blocks each, and free half of the blocks that the other
/// allocated and their own other half. `ended_pairs` pairs of threads make a round and end; two
/// more make `rounds` rounds, and allocate once more. Returns the fraction of the cache lines that
/// then hold blocks of two threads.
template <class Allocate, class Free>
double lines_of_two_threads(std::size_t bytes, std::size_t count, int rounds, int ended_pairs,
                            Allocate allocate, Free free) {
    constexpr std::size_t line_bytes = 64;
    std::vector<void*> blocks[2] = {std::vector<void*>(count), std::vector<void*>(count)};
    std::barrier turn(2);
    const auto allocate_all = [&](int thread) {
        for (void*& block : blocks[thread]) block = allocate(bytes);
        turn.arrive_and_wait();
    };
    const auto work = [&](int thread, int rounds_of_it, bool is_last) {
        for (int round = 0; round != rounds_of_it; ++round) {
            allocate_all(thread);
            for (std::size_t i = 0; i < count; i += 2) free(blocks[1 - thread][i]);
            turn.arrive_and_wait();
            for (std::size_t i = 1; i < count; i += 2) free(blocks[thread][i]);
            turn.arrive_and_wait();
        }
        if (is_last) allocate_all(thread);
    };
    for (int pair = 0; pair <= ended_pairs; ++pair) {
        const bool is_last = pair == ended_pairs;
        std::thread one(work, 0, is_last ? rounds : 1, is_last);
        std::thread other(work, 1, is_last ? rounds : 1, is_last);
        one.join();
        other.join();
    }
    std::unordered_map<std::uintptr_t, unsigned> threads_of_lines;
    for (const unsigned thread : {0U, 1U}) {
        for (void* const block : blocks[thread]) {
            const auto begin = reinterpret_cast<std::uintptr_t>(block);
            for (auto line = begin / line_bytes; line <= (begin + bytes - 1) / line_bytes; ++line) {
                threads_of_lines[line] |= 1U << thread;
            }
            free(block);
        }
    }
    const auto shared = std::ranges::count(threads_of_lines | std::views::values, 3U);
    return static_cast<double>(shared) / static_cast<double>(threads_of_lines.size());
}

TEST_F(FinerSizes, RequestGetsTheSmallestBlockThatHoldsIt) {
    for (std::size_t bytes = 1; bytes <= detail::largest_block_bytes; bytes += bytes / 16 + 1) {
        void* const block = allocate(bytes);
        EXPECT_TRUE(base::is_aligned(block, base::finer_alignment));
        EXPECT_EQ(pool_.usable_size(block), finest(bytes)) << bytes;
        EXPECT_EQ(detail::bytes_of_block_in_use(block), finest(bytes)) << bytes;
        EXPECT_TRUE(pool_.owns(block));
        free(block);
        EXPECT_FALSE(pool_.owns(block));
    }
}

TEST_F(FinerSizes, NeverOverlap) {
    std::vector<Block> blocks;
    for (int round = 0; round < 3; ++round) {
        for (std::size_t bytes = 1; bytes <= 9000; bytes += 7) {
            blocks.push_back(filled(bytes, static_cast<int>(blocks.size())));
        }
        for (std::size_t i = 0; i < blocks.size(); i += 2) {
            ASSERT_TRUE(holds(blocks[i], static_cast<int>(i)));
            free(blocks[i].address);
            blocks[i] = filled(blocks[i].bytes, static_cast<int>(i));
        }
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        ASSERT_TRUE(holds(blocks[i], static_cast<int>(i))) << i;
        free(blocks[i].address);
    }
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_F(FinerSizes, AreCountedExactly) {
    std::size_t bytes_in_use = 0;
    std::size_t requested = 0;
    std::vector<void*> blocks;
    for (std::size_t bytes = 1; bytes <= detail::largest_block_bytes; bytes += 61) {
        blocks.push_back(allocate(bytes));
        bytes_in_use += finest(bytes);
        requested += bytes;
    }
    PoolStatistics values = pool_.statistics();
    EXPECT_EQ(values.in_use_bytes, bytes_in_use);
    EXPECT_EQ(values.requested_bytes, requested);
    EXPECT_EQ(values.allocated_bytes, bytes_in_use);
    EXPECT_EQ(values.allocations, blocks.size());
    EXPECT_EQ(values.threads, 1U);
    EXPECT_EQ(values.capacity_bytes, values.in_use_bytes + values.parked_bytes +
                                         values.depot_bytes + values.span_bytes +
                                         values.cached_bytes + values.free_bytes);
    for (void* const block : blocks) free(block);
    values = pool_.statistics();
    EXPECT_EQ(values.in_use_bytes, 0U);
    EXPECT_EQ(values.deallocations, blocks.size());
    pool_.trim();
    values = pool_.statistics();
    EXPECT_EQ(values.capacity_bytes, 0U);
    EXPECT_EQ(values.parked_bytes + values.depot_bytes + values.span_bytes, 0U);
}

TEST_F(FinerSizes, CallsOfThePoolUseBucketsOnly) {
    void* const block = pool_.allocate(80);
    EXPECT_EQ(pool_.usable_size(block), 128U);
    EXPECT_TRUE(base::is_aligned(block, 64));
    void* const another = pool_.try_allocate(80, 8);
    EXPECT_EQ(pool_.usable_size(another), 128U);
    pool_.deallocate(another, 80, 8);
    pool_.deallocate(block, 80);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_F(FinerSizes, MayBeReallocatedByThePool) {
    Block block = filled(100, 7);
    ASSERT_EQ(pool_.usable_size(block.address), 112U);
    block.address = static_cast<unsigned char*>(pool_.reallocate(block.address, 100, 110));
    EXPECT_EQ(pool_.usable_size(block.address), 128U);
    EXPECT_TRUE(holds(block, 7));
    pool_.deallocate(block.address, 110);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

// Addresses inside blocks, some of them aligned like blocks.
TEST_F(FinerSizes, FreeingAPointerIntoABlockAborts) {
    if (testing::sanitized()) GTEST_SKIP() << "sanitizers report it differently";
    for (const std::size_t bytes : {std::size_t{32}, std::size_t{80}, std::size_t{100},
                                    std::size_t{1000}, std::size_t{5000}, std::size_t{60'000}}) {
        auto* const block = static_cast<char*>(allocate(bytes));
        EXPECT_DEATH(free(block + 16), "16 B inside") << bytes;
        EXPECT_DEATH(free(block + 8), "8 B inside") << bytes;
        free(block);
    }
}

TEST_F(FinerSizes, BlocksOfAnEndedThreadServeTheNextOne) {
    for (int round = 0; round < 50; ++round) {
        std::thread([] {
            std::vector<void*> blocks;
            for (std::size_t i = 0; i != 2000; ++i) blocks.push_back(allocate(i % 300 + 1));
            for (void* const block : blocks) free(block);
        }).join();
    }
    const PoolStatistics values = pool_.statistics();
    EXPECT_EQ(values.in_use_bytes, 0U);
    EXPECT_EQ(values.parked_bytes, 0U);
    EXPECT_EQ(values.threads, 0U);
    EXPECT_LE(values.capacity_bytes, 16 * mib);
}

TEST_F(FinerSizes, BlocksFreedOnOtherThreadsAreCountedOnce) {
    constexpr std::size_t count = 20'000;
    std::vector<void*> blocks(count);
    for (std::size_t i = 0; i != count; ++i) blocks[i] = allocate(i % 2000 + 1);
    std::atomic<std::size_t> next = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([&] {
            for (std::size_t i = next++; i < count; i = next++) {
                free(blocks[i]);
                free(allocate(i % 500 + 1));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    const PoolStatistics values = pool_.statistics();
    EXPECT_EQ(values.in_use_bytes, 0U);
    EXPECT_EQ(values.allocations, 2 * count);
    EXPECT_EQ(values.deallocations, 2 * count);
}

TEST_F(FinerSizes, ThreadsShareFewCacheLines) {
    for (const std::size_t bytes : {16, 32, 48, 80, 96, 112, 160, 224}) {
        EXPECT_LE(lines_of_two_threads(bytes, 20'000, 3, 0, allocate, free), 0.05) << bytes;
    }
}

// What an ended thread leaves in a depot would serve the next one first.
TEST_F(FinerSizes, EndedThreadsLeaveNoPartsOfCacheLines) {
    for (const std::size_t bytes : {16, 48, 112}) {
        EXPECT_LE(lines_of_two_threads(bytes, 200, 0, 20, allocate, free), 0.1) << bytes;
    }
}

// All series together stay below the limit for one pool.
TEST_F(FinerSizes, ParkedBlocksAreTakenBack) {
    if (!blocks::can_take_back()) GTEST_SKIP() << "no fences of all threads";
    constexpr int count = 50;
    std::latch parked(count + 1);
    std::latch over(1);
    std::vector<std::thread> threads;
    for (int t = 0; t < count; ++t) {
        threads.emplace_back([&] {
            std::vector<void*> blocks;
            for (std::size_t bytes = 1; bytes <= detail::largest_block_bytes;
                 bytes += bytes / 4 + 1) {
                for (int i = 0; i < 4; ++i) blocks.push_back(allocate(bytes));
            }
            for (void* const block : blocks) free(block);
            parked.count_down();
            over.wait();
        });
    }
    parked.arrive_and_wait();
    const PoolStatistics values = pool_.statistics();
    const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
    EXPECT_LE(values.parked_bytes, processors * 4 * mib + (count + 1) * (mib / 16));
    EXPECT_EQ(values.threads, count);
    pool_.trim();
    EXPECT_EQ(pool_.get_total_capacity(), 0U);
    over.count_down();
    for (std::thread& thread : threads) thread.join();
}

TEST_F(FinerSizes, MemoryOfOneSizeServesAnother) {
    pool_.set_max_capacity(32 * mib);
    for (const std::size_t bytes : {16, 48, 80, 320, 1280, 7168, 57344, 64}) {
        std::vector<void*> blocks;
        for (std::size_t all = 0; all < 24 * mib; all += bytes) {
            blocks.push_back(allocate(bytes));
            ASSERT_NE(blocks.back(), nullptr) << bytes;
        }
        for (void* const block : blocks) free(block);
    }
    void* const large = pool_.try_allocate(24 * mib);
    EXPECT_NE(large, nullptr);
    pool_.deallocate(large);
}

TEST_F(FinerSizes, ScopesCountTheirOwnBytes) {
    void* block = nullptr;
    free(allocate(40));
    const StatisticsScope scope("finer");
    block = allocate(40);
    EXPECT_EQ(scope.growth().bytes, 48);
    EXPECT_EQ(scope.growth().blocks[0], 1);
    free(block);
    EXPECT_EQ(scope.growth().bytes, 0);
}

TEST_F(FinerSizes, WorkInTheChildOfAMultithreadedFork) {
    if (testing::sanitized()) GTEST_SKIP() << "a fork holds more locks than the sanitizer counts";
    std::atomic<bool> is_over = false;
    std::thread thread([&] {
        while (!is_over) {
            for (std::size_t bytes = 1; bytes < 1000; bytes += 13) free(allocate(bytes));
        }
    });
    for (int round = 0; round < 20; ++round) {
        Block block = filled(90, 5);
        EXPECT_TRUE(holds_in_child([&] {
            if (!holds(block, 5)) return false;
            free(block.address);
            for (std::size_t bytes = 1; bytes < 3000; ++bytes) free(filled(bytes, 1).address);
            return true;
        }));
        free(block.address);
    }
    is_over = true;
    thread.join();
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

// A library whose constructors run earlier may have used the pool.
TEST(FinerSizesLater, ServeMallocAfterThePoolWasSetUp) {
    use_no_checks();
    void* const early = GlobalPool::try_allocate(80, base::finer_alignment).block;
    GlobalPool::serve_malloc(1);
    void* const late = GlobalPool::try_allocate(80, base::finer_alignment).block;
    EXPECT_EQ(get_global_memory_pool().usable_size(early), 128U);
    EXPECT_EQ(get_global_memory_pool().usable_size(late), 80U);
    GlobalPool::deallocate(early);
    GlobalPool::deallocate(late);
    EXPECT_EQ(get_global_memory_pool().get_total_allocated(), 0U);
}

// The global pool of programs without interposed malloc, and a pool that a program makes.
TEST(FinerSizesOfOthers, OtherPoolsHaveNoFinerSizes) {
    void* const block = GlobalPool::try_allocate(80, base::finer_alignment).block;
    EXPECT_EQ(get_global_memory_pool().usable_size(block), 128U);
    get_global_memory_pool().deallocate(block, 80);
}

TEST(FinerSizesWithoutSmallBlocks, AreNotOffered) {
    MemoryPool& pool = get_global_memory_pool();
    pool.deallocate(pool.allocate(64), 64);
    GlobalPool::serve_malloc(detail::largest_block_bytes);
    void* const block = GlobalPool::try_allocate(80, base::finer_alignment).block;
    EXPECT_EQ(pool.usable_size(block), 128U);
    GlobalPool::deallocate(block);
}

}  // namespace
}  // namespace tensorpool
