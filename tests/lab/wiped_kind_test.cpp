// A kind of blocks that a folder beside the library adds: what the pool does with it by itself.

#include "lab/wiped_kind.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "pages/address_space.hpp"

namespace tensorpool::lab {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

class WipedBlocks : public ::testing::Test {
protected:
    char* allocate(std::size_t bytes) {
        auto* const block = static_cast<char*>(pool_.allocate(bytes, WipedKind::alignment));
        EXPECT_EQ(kind_of(block), WipedKind::number);
        std::memset(block, 7, bytes);
        return block;
    }
    static pages::PageKind kind_of(const void* p) {
        return pages::address_space().map().at(p).kind();
    }

    MemoryPool pool_{PoolOptions{.name = "lab", .checks = Checks::off}};
};

TEST_F(WipedBlocks, ServeTheRequestsThatTheirRouteTakes) {
    for (const std::size_t bytes : {std::size_t{1}, 100 * kib, 3 * mib}) {
        char* const block = allocate(bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % WipedKind::alignment, 0U);
        pool_.deallocate(block, bytes, WipedKind::alignment);
    }
    void* const other = pool_.allocate(100 * kib);
    EXPECT_EQ(kind_of(other), pages::PageKind::large_in_use);
    pool_.deallocate(other);
}

TEST_F(WipedBlocks, AreFoundByAnyPointerIntoThem) {
    char* const block = allocate(100 * kib);
    EXPECT_TRUE(pool_.owns(block + 50 * kib));
    EXPECT_EQ(pool_.usable_size(block), 100 * kib);
    EXPECT_EQ(pool_.usable_size(block + 4 * kib), 0U);
    pool_.deallocate(block);
    EXPECT_FALSE(pool_.owns(block));
}

TEST_F(WipedBlocks, LeaveZeros) {
    char* const block = allocate(mib);
    pool_.deallocate(block);
    std::vector<void*> others;
    bool is_reused = false;
    while (!is_reused && others.size() != 100) {
        others.push_back(pool_.allocate(mib));
        auto* const other = static_cast<const char*>(others.back());
        is_reused = other == block;
        if (is_reused) {
            EXPECT_TRUE(std::all_of(other, other + mib, [](char c) { return c == 0; }));
        }
    }
    EXPECT_TRUE(is_reused);
    for (void* const other : others) pool_.deallocate(other);
}

TEST_F(WipedBlocks, AreCounted) {
    char* const block = allocate(100 * kib);
    EXPECT_EQ(pool_.get_total_allocated(), 100 * kib);
    EXPECT_EQ(pool_.statistics().large.allocations, 1U);
    std::thread([&] { pool_.deallocate(block); }).join();
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
    EXPECT_EQ(pool_.statistics().large.deallocations, 1U);
}

TEST_F(WipedBlocks, MoveWhenTheyAreReallocated) {
    char* const block = allocate(100 * kib);
    auto* const moved = static_cast<char*>(pool_.reallocate(block, 100 * kib, 200 * kib));
    EXPECT_EQ(kind_of(moved), pages::PageKind::large_in_use);
    EXPECT_TRUE(std::all_of(moved, moved + 100 * kib, [](char c) { return c == 7; }));
    pool_.deallocate(moved);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_F(WipedBlocks, GetMemoryThatCachesKeep) {
    pool_.set_max_capacity(16 * mib);
    std::vector<void*> blocks(12 * kib);
    for (void*& block : blocks) block = pool_.allocate(kib);
    for (void* const block : blocks) pool_.deallocate(block, kib);
    pool_.deallocate(allocate(14 * mib));
}

TEST_F(WipedBlocks, RefusalStatesItsReason) {
    pool_.set_max_capacity(mib);
    try {
        (void)pool_.allocate(2 * mib, WipedKind::alignment);
        FAIL() << "it was not refused";
    } catch (const AllocationError& error) {
        EXPECT_NE(std::string(error.what()).find("max_capacity"), std::string::npos);
    }
}

TEST_F(WipedBlocks, SecondFreeAndFreeInsideAreReported) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    char* const block = allocate(100 * kib);
    EXPECT_DEATH(pool_.deallocate(block + 4 * kib), "lab.*deallocate");
    pool_.deallocate(block);
    EXPECT_DEATH(pool_.deallocate(block), "lab.*deallocate");
}

}  // namespace
}  // namespace tensorpool::lab
