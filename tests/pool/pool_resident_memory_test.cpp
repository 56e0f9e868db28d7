// The resident memory of a pool, each measured in a child process of its own. Not compiled under
// sanitizers, see `sanitized()`.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <cstddef>
#include <cstring>
#include <iostream>
#include <thread>
#include <vector>

#include "platform/platform.hpp"
#include "pool/fill.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool {
namespace {

using testing::free_all;
using testing::touched_blocks;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

std::size_t resident() {
    return testing::memory_metrics().resident;
}

bool at_most(const char* what, std::size_t bytes, std::size_t max_bytes) {
    if (bytes > max_bytes)
        std::cerr << what << ": " << bytes << " B; expected at most " << max_bytes << " B\n";
    return bytes <= max_bytes;
}

std::size_t grown_since(std::size_t before) {
    const std::size_t now = resident();
    return now > before ? now - before : 0;
}

PoolOptions without_checks() {
    return {.checks = Checks::off};
}

/// Sets up what all pools of a process share, and touches this thread's stack.
void use_another_pool() {
    MemoryPool pool(without_checks());
    for (std::size_t bytes = 64; bytes <= mib; bytes *= 2) {
        pool.deallocate(pool.allocate(bytes), bytes);
    }
}

class PoolResidentMemory : public ::testing::TestWithParam<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Sizes, PoolResidentMemory,
                         ::testing::Values(64, kib, 16 * kib, 100 * kib, 5 * mib),
                         ::testing::PrintToStringParamName());

TEST(PoolResidentMemory, IdlePoolIsBelow1MiB) {
    if constexpr (testing::sanitized()) return;
    EXPECT_TRUE(testing::holds_in_child([] {
        const std::size_t before = resident();
        MemoryPool pool(without_checks());
        pool.deallocate(pool.allocate(100), 100);
        return at_most("idle pool", grown_since(before), mib);
    }));
}

TEST(PoolResidentMemory, TrimReleasesWholePagesBetweenBlocksInUse) {
    if constexpr (testing::sanitized()) return;
    EXPECT_TRUE(testing::holds_in_child([] {
        bool holds = true;
        for (std::size_t bytes = 4 * kib; bytes <= 64 * kib; bytes *= 2) {
            const std::size_t before = resident();
            MemoryPool pool(without_checks());
            std::vector<unsigned char*> kept;
            std::vector<void*> others;
            for (std::size_t i = 0; i != 64 * mib / bytes; ++i) {
                auto* const block = static_cast<unsigned char*>(pool.allocate(bytes));
                std::memset(block, static_cast<int>(i % 251), bytes);
                if (i % 10 == 0) {
                    kept.push_back(block);
                } else {
                    others.push_back(block);
                }
            }
            free_all(pool, others, bytes);
            const std::size_t in_use = kept.size() * bytes;
            pool.trim();
            // A block shares its first and last page with its neighbours.
            const std::size_t max_bytes = in_use + 2 * kept.size() * platform::page_bytes();
            holds = at_most("after trim", grown_since(before), max_bytes + mib) && holds;
            for (std::size_t i = 0; i != kept.size(); ++i) {
                holds = kept[i][0] == 10 * i % 251 && kept[i][bytes - 1] == 10 * i % 251 && holds;
                pool.deallocate(kept[i], bytes);
            }
        }
        return holds;
    }));
}

TEST(PoolResidentMemory, ThreadThatAllocatesOneBlockOfEachBucketParksLessThan512KiB) {
    MemoryPool pool(without_checks());
    std::thread([&] {
        std::vector<void*> blocks;
        for (std::size_t bytes = 64; bytes <= 64 * kib; bytes *= 2)
            blocks.push_back(pool.allocate(bytes));
        EXPECT_LT(pool.statistics().parked_bytes, 512 * kib);
        free_all(pool, blocks, 0);
        EXPECT_LT(pool.statistics().parked_bytes, 512 * kib);
    }).join();
}

TEST(PoolResidentMemory, OnlyThePrefaultedBytesAreResident) {
    if constexpr (testing::sanitized()) return;
    EXPECT_TRUE(testing::holds_in_child([] {
        use_another_pool();
        constexpr std::size_t requested = 40 * mib + 5 * kib;
        MemoryPool pool(without_checks());
        const std::size_t before = resident();
        void* const block = pool.allocate_prefaulted(requested);
        const std::size_t prefaulted = grown_since(before);
        void* const again = pool.try_allocate_prefaulted(requested);
        const std::size_t both = grown_since(before);
        void* const other = pool.allocate(requested);
        void* const zeroed = pool.allocate_zeroed(requested, 1);
        const bool as_expected = block != nullptr && again != nullptr && prefaulted >= requested &&
                                 at_most("prefaulted", prefaulted, requested + mib) &&
                                 both >= 2 * requested &&
                                 at_most("with others", grown_since(before), 2 * requested + mib);
        for (void* const p : {block, again, other, zeroed}) pool.deallocate(p);
        return as_expected;
    }));
}

TEST_P(PoolResidentMemory, TrimmedPoolIsWithin1MiBOfItsBeginning) {
    if constexpr (testing::sanitized()) return;
    EXPECT_TRUE(testing::holds_in_child([] {
        use_another_pool();
        const std::size_t bytes = GetParam();
        // The list of blocks is touched before the measurement, and stays.
        std::vector<void*> blocks(200 * mib / bytes, &blocks);
        const std::size_t before = resident();
        MemoryPool pool(without_checks());
        for (void*& block : blocks) {
            block = pool.allocate(bytes);
            for (std::size_t at = 0; at < bytes; at += 4096) static_cast<char*>(block)[at] = 1;
        }
        if (grown_since(before) < 190 * mib) return false;
        free_all(pool, blocks, bytes);
        pool.trim();
        return at_most("trimmed pool", grown_since(before), mib);
    }));
}

TEST_P(PoolResidentMemory, TrimReturnsMemoryOfOtherThreads) {
    if constexpr (testing::sanitized()) return;
    EXPECT_TRUE(testing::holds_in_child([] {
        use_another_pool();
        std::thread(use_another_pool).join();
        const std::size_t bytes = GetParam();
        const std::size_t before = resident();
        MemoryPool pool(without_checks());
        std::thread([&] { free_all(pool, touched_blocks(pool, 100 * mib, bytes), bytes); }).join();
        std::thread([&] { free_all(pool, touched_blocks(pool, 100 * mib, bytes), bytes); }).join();
        pool.trim();
        // The threads' lists of blocks may stay in malloc's heap.
        const std::size_t lists = 2 * 100 * mib / bytes * sizeof(void*);
        return at_most("trimmed pool", grown_since(before), mib + lists);
    }));
}

TEST_P(PoolResidentMemory, RecordsStayBelowOnePercentOfCapacity) {
    if constexpr (testing::sanitized()) return;
    EXPECT_TRUE(testing::holds_in_child([] {
        // Huge pages contain more than was touched, so the size of the records could not be
        // measured.
        if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) return false;
        use_another_pool();
        const std::size_t bytes = GetParam();
        std::vector<void*> blocks(128 * mib / bytes, &blocks);
        MemoryPool pool(without_checks());
        const std::size_t before = resident();
        for (void*& block : blocks) {
            block = pool.allocate(bytes);
            for (std::size_t at = 0; at < bytes; at += 4096) static_cast<char*>(block)[at] = 1;
        }
        const std::size_t blocks_themselves = blocks.size() * bytes;
        const std::size_t records = grown_since(before) - blocks_themselves;
        if (!at_most("records while in use", records, pool.get_total_capacity() / 100))
            return false;
        free_all(pool, blocks, bytes);
        return at_most("records when freed", grown_since(before) - blocks_themselves,
                       pool.get_total_capacity() / 100);
    }));
}

}  // namespace
}  // namespace tensorpool
