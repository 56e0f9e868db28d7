// Forks with frozen blocks. The child of a fork must see the same content, and its writes must not
// reach the parent.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <latch>
#include <thread>
#include <vector>

#include "rest/in_place/frozen_blocks.hpp"
#include "support/child_process.hpp"
#include "support/own_threads_linux.hpp"

namespace tensorpool {
namespace {

using testing::content_of;
using testing::fill;
using testing::holds_in_child;
using testing::KiB;
using testing::piece_bytes;

// ThreadSanitizer lets no child of a fork start a thread: its blocks are thawed.
#ifdef __SANITIZE_THREAD__
constexpr bool child_serves_faults = false;
#else
constexpr bool child_serves_faults = true;
#endif

using FreezerFork = testing::Freezes;

TEST_F(FreezerFork, ChildReadsTheContentInPiecesOfItsOwn) {
    PooledAllocation block(pool_, 2048 * KiB);
    fill(block, 1);
    const auto before = content_of(block);
    freeze(block, {.window_bytes = 256 * KiB});
    block.as<std::byte>()[3 * piece_bytes] = std::byte{1};
    (void)*static_cast<volatile char*>(block.get());
    EXPECT_TRUE(holds_in_child([&] {
        auto expected = before;
        expected[3 * piece_bytes] = std::byte{1};
        return is_frozen(block.get()) == child_serves_faults && content_of(block) == expected &&
               content_of(block) == expected && freeze_statistics().resident_bytes <= 256 * KiB;
    }));
}

TEST_F(FreezerFork, WritesOfTheChildDoNotReachTheParent) {
    PooledAllocation block(pool_, 1024 * KiB);
    fill(block, 2);
    const auto before = content_of(block);
    freeze(block, {.window_bytes = 256 * KiB});
    EXPECT_TRUE(holds_in_child([&] {
        std::memset(block.get(), 5, block.size());
        return content_of(block) == std::vector<std::byte>(block.size(), std::byte{5});
    }));
    EXPECT_EQ(content_of(block), before);
}

TEST_F(FreezerFork, WritesOfTheParentDoNotReachTheChild) {
    PooledAllocation block(pool_, 1024 * KiB);
    fill(block, 3);
    const auto before = content_of(block);
    freeze(block, {.window_bytes = 256 * KiB});
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        char go = 0;
        (void)!read(ends[0], &go, 1);
        _exit(content_of(block) == before ? 0 : 1);
    }
    std::memset(block.get(), 6, block.size());
    EXPECT_EQ(write(ends[1], "g", 1), 1);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(content_of(block), std::vector<std::byte>(block.size(), std::byte{6}));
    close(ends[0]);
    close(ends[1]);
}

TEST_F(FreezerFork, ChildThawsFreesAndFreezes) {
    PooledAllocation first(pool_, 512 * KiB);
    PooledAllocation second(pool_, 512 * KiB);
    fill(first, 4);
    fill(second, 5);
    const auto before = content_of(first);
    freeze(first);
    freeze(second);
    EXPECT_TRUE(holds_in_child([&] {
        second.reset();
        if (thaw(first) != child_serves_faults || content_of(first) != before) return false;
        if (!child_serves_faults) return true;
        freeze(first);
        return content_of(first) == before && freeze_statistics().blocks == 1;
    }));
    EXPECT_EQ(freeze_statistics().blocks, 2U);
    EXPECT_EQ(content_of(first), before);
}

// With the global pool, as many locks as ThreadSanitizer follows.
TEST_F(FreezerFork, BlocksOfTwoPools) {
    PooledAllocation first(pool_, 512 * KiB);
    PooledAllocation second(512 * KiB);
    fill(first, 9);
    fill(second, 10);
    const auto before = content_of(first);
    const auto before_second = content_of(second);
    freeze(first);
    freeze(second);
    EXPECT_TRUE(holds_in_child(
        [&] { return content_of(first) == before && content_of(second) == before_second; }));
}

TEST_F(FreezerFork, GrandchildReadsTheContent) {
    PooledAllocation block(pool_, 512 * KiB);
    fill(block, 6);
    const auto before = content_of(block);
    freeze(block);
    EXPECT_TRUE(holds_in_child([&] {
        return holds_in_child([&] { return content_of(block) == before; }) &&
               content_of(block) == before;
    }));
}

TEST_F(FreezerFork, ChildThatMayStartNoThreadGetsTheBlocksThawed) {
    PooledAllocation block(pool_, 512 * KiB);
    fill(block, 7);
    const auto before = content_of(block);
    freeze(block);
    // A descriptor less than the process has: the child cannot open a source of its own.
    EXPECT_TRUE(holds_in_child([&] {
        rlimit none{0, 0};
        if (setrlimit(RLIMIT_NOFILE, &none) != 0) return false;
        return holds_in_child([&] {
            return !is_frozen(block.get()) && content_of(block) == before &&
                   freeze_statistics().blocks == 0;
        });
    }));
}

TEST_F(FreezerFork, ChildWithoutFrozenBlocksHasNoThread) {
    {
        PooledAllocation block(pool_, 512 * KiB);
        freeze(block);
    }
    EXPECT_TRUE(holds_in_child([] { return testing::threads_named("tensorpool-thaw").empty(); }));
}

// No fork before all threads have started, for that calls malloc: AddressSanitizer's is not made
// for forks, and the child's handler would wait for its lock for ever.
TEST_F(FreezerFork, ForksWhileFaultsAreServed) {
#ifdef __SANITIZE_ADDRESS__
    // A child that is made while another thread is inside its allocator waits for ever.
    GTEST_SKIP() << "the address sanitizer of gcc 12 keeps its allocator locked in a child";
#endif
    PooledAllocation block(pool_, 2048 * KiB);
    fill(block, 8);
    const auto before = content_of(block);
    freeze(block, {.window_bytes = 256 * KiB});
    std::atomic<bool> ends = false;
    std::latch started(3);
    std::vector<std::thread> workers;
    for (unsigned worker = 0; worker != 2; ++worker) {
        workers.emplace_back([&, worker] {
            started.count_down();
            for (std::size_t at = worker; !ends; at += 64 * KiB + 1) {
                std::atomic_ref(block.as<unsigned char>()[at % block.size()]).fetch_or(0);
            }
        });
    }
    std::thread thawing([&] {
        const PooledAllocation other(pool_, 512 * KiB);
        started.count_down();
        while (!ends) {
            freeze(other);
            thaw(other);
        }
    });
    started.wait();
    for (int i = 0; i != 30; ++i) {
        EXPECT_TRUE(holds_in_child([&] { return content_of(block) == before; })) << i;
    }
    ends = true;
    for (std::thread& worker : workers) worker.join();
    thawing.join();
    EXPECT_EQ(content_of(block), before);
}

}  // namespace
}  // namespace tensorpool
