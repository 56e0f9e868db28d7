// Pools with a limited address space (`ulimit -v`), and large numbers of pools.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "platform/platform.hpp"
#include "support/address_space_limit_linux.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool {
namespace {

using testing::holds_in_child;
using testing::leave_address_space;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

/// Allocates blocks of this size until one is refused and returns their bytes. They are not freed.
std::size_t fill(MemoryPool& pool, std::size_t bytes) {
    std::size_t all = 0;
    while (pool.try_allocate(bytes) != nullptr) all += bytes;
    return all;
}

class PoolUnderALimit : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, PoolUnderALimit,
                         ::testing::Values(4 * kib, 64 * kib, mib, 50 * mib));

// The pool gets as much as glibc's malloc: all addresses except those of its records.
TEST_P(PoolUnderALimit, GetsAlmostAllOfTheAddresses) {
    if (testing::sanitized())
        GTEST_SKIP() << "mappings of the sanitizers take the remaining addresses";
    EXPECT_TRUE(holds_in_child([bytes = GetParam()] {
        MemoryPool pool;
        if (!leave_address_space(1000 * mib)) return false;
        return fill(pool, bytes) >= 930 * mib;
    }));
}

TEST(PoolUnderALimit, AddressesOfATrimmedPoolServeAnother) {
    EXPECT_TRUE(holds_in_child([] {
        MemoryPool a;
        MemoryPool b;
        if (!leave_address_space(1200 * mib)) return false;
        void* const block = a.allocate(1000 * mib);
        if (b.try_allocate(1000 * mib) != nullptr) return false;
        a.deallocate(block, 1000 * mib);
        a.trim();
        return b.try_allocate(1000 * mib) != nullptr;
    }));
}

TEST(PoolUnderALimit, RequestAboveALoweredLimitFailsAndChangesNothing) {
    EXPECT_TRUE(holds_in_child([] {
        MemoryPool pool;
        void* const kept = pool.allocate(10 * mib);
        std::memset(kept, 3, 10 * mib);
        if (!leave_address_space(16 * mib)) return false;
        const std::size_t capacity = pool.get_total_capacity();
        try {
            (void)pool.allocate(2000 * mib);
            return false;
        } catch (const AllocationError& error) {
            if (std::strstr(error.what(), "address space") == nullptr) return false;
        }
        return pool.get_total_capacity() == capacity && pool.owns(kept) &&
               static_cast<unsigned char*>(kept)[10 * mib - 1] == 3;
    }));
}

TEST(ManyPools, TwentyThousandPoolsWithABlockEachExistAtOnce) {
    if (testing::sanitized())
        GTEST_SKIP() << "mappings of the sanitizers take the remaining addresses";
    EXPECT_TRUE(holds_in_child([] {
        std::vector<std::unique_ptr<MemoryPool>> pools(20'000);
        std::vector<void*> blocks;
        for (auto& pool : pools) {
            pool = std::make_unique<MemoryPool>();
            blocks.push_back(pool->allocate(kib));
            *static_cast<std::size_t*>(blocks.back()) = blocks.size();
        }
        for (std::size_t i = 0; i != pools.size(); ++i) {
            if (*static_cast<std::size_t*>(blocks[i]) != i + 1) return false;
            pools[i]->deallocate(blocks[i], kib);
        }
        return true;
    }));
}

}  // namespace
}  // namespace tensorpool
