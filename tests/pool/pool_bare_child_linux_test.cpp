// Children that are made without the handlers of a fork, by clone(2) or _Fork.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "pool/fill.hpp"
#include "support/bare_child_linux.hpp"
#include "support/child_process.hpp"
#include "support/own_threads_linux.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

bool can_use(MemoryPool& pool) {
    for (const std::size_t bytes : {9 * mib, std::size_t{300'000}, std::size_t{1000}}) {
        std::vector<void*> blocks(bytes > mib ? 2 : 40);
        for (void*& block : blocks) {
            block = pool.allocate(bytes);
            std::memset(block, 1, bytes);
        }
        for (void* const block : blocks) pool.deallocate(block, bytes);
    }
    return true;
}

/// Whether the threads with this name wait.
bool is_asleep(const std::string& name) {
    for (const std::string& status : testing::threads_named(name)) {
        if (status.find("State:\tS") == std::string::npos) return false;
    }
    return true;
}

class BareChild : public ::testing::Test {
protected:
    void SetUp() override {
        if (testing::sanitized()) GTEST_SKIP() << "sanitizers do not notice such children";
    }
};

TEST_F(BareChild, CanAllocateAndFree) {
    MemoryPool pool;
    can_use(pool);
    for (int turn = 0; turn < 50; ++turn) {
        EXPECT_TRUE(testing::holds_in_bare_child([&] { return can_use(pool); })) << turn;
    }
    EXPECT_TRUE(can_use(pool));
}

TEST_F(BareChild, FreesBlocksOfItsParent) {
    MemoryPool pool;
    void* const small = pool.allocate(1000);
    void* const large = pool.allocate(3 * mib);
    EXPECT_TRUE(testing::holds_in_bare_child([&] {
        pool.deallocate(large, 3 * mib);
        pool.deallocate(small, 1000);
        return can_use(pool);
    }));
    pool.deallocate(large, 3 * mib);
    pool.deallocate(small, 1000);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST_F(BareChild, DoesNotCountInItsParent) {
    MemoryPool pool;
    can_use(pool);
    const PoolStatistics before = pool.statistics();
    EXPECT_TRUE(testing::holds_in_bare_child([&] { return can_use(pool); }));
    const PoolStatistics after = pool.statistics();
    EXPECT_EQ(before.large.allocations, after.large.allocations);
    EXPECT_EQ(before.buckets[4].allocations, after.buckets[4].allocations);
    EXPECT_EQ(before.capacity_bytes, after.capacity_bytes);
}

// What its parent's threads parked is lost, but not what lies in depots and extents.
TEST_F(BareChild, GathersFreeMemoryBeforeARefusal) {
    MemoryPool pool({.max_capacity = 16 * mib});
    const auto fits_in_turn = [&] {
        for (int turn = 0; turn != 3; ++turn) {
            std::vector<void*> blocks(8 * 1024);
            for (void*& block : blocks) {
                block = pool.try_allocate(1024);
                if (block == nullptr) return false;
            }
            for (void* const block : blocks) pool.deallocate(block, 1024);
            void* const large = pool.try_allocate(15 * mib);
            if (large == nullptr) return false;
            pool.deallocate(large, 15 * mib);
        }
        return true;
    };
    EXPECT_TRUE(fits_in_turn());
    EXPECT_TRUE(testing::holds_in_bare_child(fits_in_turn));
}

TEST_F(BareChild, HasChildrenOfItsOwn) {
    MemoryPool pool;
    can_use(pool);
    EXPECT_TRUE(testing::holds_in_bare_child([&] {
        return can_use(pool) && testing::holds_in_bare_child([&] { return can_use(pool); }) &&
               testing::holds_in_child([&] { return can_use(pool); }) && can_use(pool);
    }));
}

// The trimmer's thread does not exist there, and its word is not mapped.
TEST_F(BareChild, WakesNoTrimmer) {
    EXPECT_TRUE(testing::holds_in_child([] {
        allow_background_trimmer(true);
        PoolOptions options;
        options.retain = {.milliseconds = 1, .background = BackgroundTrim::on};
        MemoryPool pool(options);
        can_use(pool);
        // It may still hold a lock of the pool when it has given all memory back.
        while (pool.get_total_capacity() != 0 || !is_asleep("tensorpool-trim")) {
            std::this_thread::yield();
        }
        return testing::holds_in_bare_child([&] { return can_use(pool); });
    }));
}

// A recording hides the inline paths, and its rings are not mapped in the child.
TEST_F(BareChild, IsNotRecorded) {
    EXPECT_TRUE(testing::holds_in_child([] {
        char path[] = "/tmp/tensorpool-bare-child-XXXXXX";
        ::close(::mkstemp(path));
        ::setenv("TENSORPOOL_TRACE", path, 1);
        MemoryPool pool;
        const bool could = can_use(pool);
        const bool child_could = testing::holds_in_bare_child([&] { return can_use(pool); });
        ::unlink(path);
        return could && child_could;
    }));
}

}  // namespace
}  // namespace tensorpool
