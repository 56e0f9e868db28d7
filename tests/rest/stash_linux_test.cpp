#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include <tensorpool/stash.hpp>

#include "rest/spill_files_linux.hpp"
#include "rest/test_content.hpp"
#include "support/child_process.hpp"
#include "support/wait_until.hpp"

namespace tensorpool::stashing {
namespace {

/// The tests run in the build folder, which lies on a disk unless the machine has none.
class StashSpillTest : public ::testing::Test {
protected:
    void SetUp() override {
        const std::string problem = message_of([&] { (void)spilled(Bytes(1)); });
        if (!problem.empty()) GTEST_SKIP() << problem;
    }
    Stash spilled(const Bytes& bytes, StashMethod method = StashMethod::spill) {
        return stash(block_with(bytes, pool_), {.name = "weights",
                                                .type = DataType::of<float>(),
                                                .method = method,
                                                .folder = ".",
                                                .pool = &store_});
    }
    Bytes random(std::size_t bytes) {
        Bytes all(bytes);
        for (std::byte& byte : all) byte = static_cast<std::byte>(generator_());
        return all;
    }
    static std::size_t open_files() {
        const std::filesystem::directory_iterator files("/proc/self/fd");
        return static_cast<std::size_t>(std::distance(begin(files), end(files)));
    }

    MemoryPool pool_{PoolOptions{.name = "tensors"}};
    MemoryPool store_{PoolOptions{.name = "at rest"}};
    Generator generator_{1};
};

TEST_F(StashSpillTest, ContentOfAnySizeComesBackExactly) {
    for (const std::size_t bytes : {1, 4095, 65'536, 65'537, 1 << 20, 5'000'001}) {
        const Bytes expected = content(bytes, generator_);
        Stash kept = spilled(expected);
        EXPECT_GT(kept.bytes_spilled(), 0U);
        EXPECT_EQ(kept.bytes_at_rest() - kept.bytes_spilled(), store_.statistics().in_use_bytes);
        EXPECT_EQ(pool_.statistics().in_use_bytes, 0U);
        kept.prefetch();
        EXPECT_TRUE(holds(kept.restore(), expected)) << bytes;
        EXPECT_EQ(store_.statistics().in_use_bytes, 0U);
    }
}

TEST_F(StashSpillTest, SmallContentNeedsLittleMemoryToComeBack) {
    MemoryPool small(PoolOptions{.name = "small", .max_capacity = 768 << 10});
    const Bytes expected = random(10'000);
    Stash kept = stash(block_with(expected, pool_),
                       {.method = StashMethod::spill, .folder = ".", .pool = &small});
    EXPECT_TRUE(holds(kept.restore(), expected));
}

TEST_F(StashSpillTest, ByCostSpillsWhatDoesNotShrink) {
    EXPECT_EQ(spilled(Bytes(1 << 20), StashMethod::by_cost).bytes_spilled(), 0U);
    EXPECT_GT(spilled(random(1 << 20), StashMethod::by_cost).bytes_spilled(), 1U << 20);
    EXPECT_EQ(spilled(Bytes(), StashMethod::by_cost).bytes_spilled(), 0U);
}

TEST_F(StashSpillTest, ByCostSpillsWhatThePoolHasNoRoomFor) {
    MemoryPool small(PoolOptions{.name = "small", .max_capacity = 6 << 20});
    Bytes expected(16 << 20);  // shrinks to a little more than half
    Generator generator(1);
    for (std::size_t i = 0; i < expected.size(); i += 2)
        expected[i] = static_cast<std::byte>(generator());
    const auto make = [&](StashMethod method) {
        return Stash(std::span<const std::byte>(expected), {.type = DataType::of<std::uint16_t>(),
                                                            .method = method,
                                                            .folder = ".",
                                                            .pool = &small});
    };
    EXPECT_THROW((void)make(StashMethod::compress), AllocationError);
    Stash kept = make(StashMethod::by_cost);
    EXPECT_GT(kept.bytes_spilled(), 8U << 20);
    EXPECT_LT(small.statistics().in_use_bytes, 1U << 20);
    EXPECT_TRUE(holds(kept.restore(), expected));
    EXPECT_EQ(small.statistics().in_use_bytes, 0U);
    EXPECT_EQ(spill_file(), -1);
}

TEST_F(StashSpillTest, WhatThePoolHasNoRoomForGoesToAFileHoweverFullItIs) {
    constexpr std::size_t limit = 4 << 20;
    MemoryPool full(PoolOptions{.name = "full", .max_capacity = limit});
    std::vector<PooledAllocation> blocks;
    for (std::size_t bytes = limit; bytes >= 64; bytes /= 2) {
        while (void* const block = full.try_allocate(bytes))
            blocks.emplace_back(HeldBlock{block, bytes, BlockOwner::of_pool(&full, 64)});
    }
    for (const StashMethod method : {StashMethod::by_cost, StashMethod::spill}) {
        for (const Bytes& expected : {Bytes(3 << 20), random(3 << 20), random(10'000)}) {
            Stash kept(std::span<const std::byte>(expected),
                       {.method = method, .folder = ".", .pool = &full});
            EXPECT_NE(kept.bytes_spilled(), 0U);
            EXPECT_TRUE(holds(kept.restore(), expected));
        }
    }
    EXPECT_THROW(Stash(std::span<const std::byte>(random(10'000)), {.pool = &full}),
                 AllocationError);
}

TEST_F(StashSpillTest, SpillingGoesOnInAFileOfLimitedSize) {
    EXPECT_TRUE(testing::holds_in_child([&] {
        const rlimit limit{4 << 20, 4 << 20};
        setrlimit(RLIMIT_FSIZE, &limit);
        const Bytes kept = random(100'000);
        const Stash other = spilled(kept);
        for (int i = 0; i < 20; ++i) {
            const Bytes expected = random(3 << 20);
            if (!holds(spilled(expected).restore(), expected)) return false;
        }
        return true;
    }));
}

TEST_F(StashSpillTest, WhatRestsInAFullPoolComesBack) {
    MemoryPool small(PoolOptions{.name = "small", .max_capacity = 2 << 20});
    const Bytes expected = random(300'000);
    Stash kept(std::span<const std::byte>(expected), {.pool = &small});
    EXPECT_EQ(kept.bytes_spilled(), 0U);
    std::vector<PooledAllocation> blocks;
    while (void* const block = small.try_allocate(70'000))
        blocks.emplace_back(HeldBlock{block, 70'000, BlockOwner::of_pool(&small, 64)});
    EXPECT_TRUE(holds(kept.restore(), expected));
}

TEST_F(StashSpillTest, ManyStashesShareOneFileWhichTheLastOneCloses) {
    const std::size_t before = open_files();
    {
        std::vector<Stash> all;
        for (int i = 0; i < 20; ++i) all.push_back(spilled(content(100'000, generator_)));
        EXPECT_GT(open_files(), before);
        EXPECT_LE(open_files(), before + 2)
            << "one through the page cache, and one that bypasses it";
    }
    EXPECT_EQ(open_files(), before);
}

TEST_F(StashSpillTest, FoldersThatCannotBeUsedAreErrorsThatKeepTheBlock) {
    const Bytes expected = random(1000);
    PooledAllocation block = block_with(expected, pool_);
    const auto message_for = [&](const char* folder) {
        return message_of([&] {
            stash(std::move(block), {.name = "x", .method = StashMethod::spill, .folder = folder});
        });
    };
    EXPECT_EQ(message_for("/nowhere"),
              "tensorpool: stash 'x': folder '/nowhere': no unnamed file can be created there "
              "(O_TMPFILE): No such file or directory");
    if (std::filesystem::exists("/dev/shm")) {
        EXPECT_EQ(message_for("/dev/shm"),
                  "tensorpool: stash 'x': folder '/dev/shm': found a file system in memory (tmpfs "
                  "or ramfs), expected one on a disk");
    }
    EXPECT_TRUE(holds(block, expected));
}

TEST_F(StashSpillTest, FullDiskKeepsTheBlockAndOtherStashes) {
    // A limit on file sizes stands for the disk.
    EXPECT_TRUE(testing::holds_in_child([&] {
        const Bytes small = random(100'000);
        Stash other = spilled(small);
        const rlimit limit = {3 << 20, 3 << 20};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
        const Bytes expected = random(8 << 20);
        PooledAllocation block = block_with(expected, pool_);
        const StashOptions options = {
            .name = "x", .method = StashMethod::spill, .folder = ".", .pool = &store_};
        const std::size_t before = store_.statistics().in_use_bytes;
        const std::size_t on_disk = disk_space();
        const std::string message = message_of([&] { stash(std::move(block), options); });
        return message == "tensorpool: stash 'x': folder '.': write: File too large" &&
               holds(block, expected) && store_.statistics().in_use_bytes == before &&
               disk_space() == on_disk && holds(other.restore(), small);
    }));
}

TEST_F(StashSpillTest, FlippedBitInTheFileIsAnErrorAndTheStashStays) {
    Stash kept = spilled(random(200'000));
    // Another process of this user could write the file through /proc.
    const int file = spill_file();
    std::byte byte{};
    ASSERT_EQ(pread(file, &byte, 1, 150'000), 1);
    byte ^= std::byte{16};
    ASSERT_EQ(pwrite(file, &byte, 1, 150'000), 1);
    for (int times = 0; times < 2; ++times) {
        try {
            (void)kept.restore();
            ADD_FAILURE() << "wrong bytes were restored";
        } catch (const StashError& error) {
            EXPECT_EQ(error.tensor(), "weights");
            EXPECT_EQ(error.piece(), 2U) << error.what();
        }
        EXPECT_TRUE(kept);
        EXPECT_EQ(pool_.statistics().in_use_bytes, 0U);
    }
}

TEST_F(StashSpillTest, FileCutShortIsAnErrorAndTheStashStays) {
    Stash kept = spilled(random(2 << 20));
    ASSERT_EQ(ftruncate(spill_file(), 1'500'000), 0);
    const std::string message = message_of([&] { (void)kept.restore(); });
    EXPECT_NE(
        message.find("tensorpool: stash 'weights': folder '.': found the end of the file after "),
        std::string::npos)
        << message;
    EXPECT_TRUE(kept);
}

TEST_F(StashSpillTest, ParentAndChildBothRestoreWhatExistedAtTheFork) {
    const Bytes expected = random(3'000'000);
    const Bytes later = random(3'000'000);
    Stash kept = spilled(expected);
    Stash in_memory = spilled(Bytes(1 << 20), StashMethod::compress);
    EXPECT_TRUE(testing::holds_in_child([&] {
        Stash of_child = spilled(later);  // goes to another file
        return holds(kept.restore(), expected) && holds(in_memory.restore(), Bytes(1 << 20)) &&
               holds(of_child.restore(), later);
    }));
    Stash of_parent = spilled(later);
    EXPECT_TRUE(holds(kept.restore(), expected));
    EXPECT_TRUE(holds(of_parent.restore(), later));
    EXPECT_TRUE(holds(in_memory.restore(), Bytes(1 << 20)));
}

TEST_F(StashSpillTest, ChildRestoresWhatTheParentHasRestoredAndReplaced) {
    const Bytes expected = random(1'000'000);
    Stash kept = spilled(expected);
    const Stash keeps_the_file_open = spilled(expected);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        char go = 0;
        const bool began = read(ends[0], &go, 1) == 1;
        const Bytes other = random(1'000'000);
        Stash of_child = spilled(other);
        const bool is_right = holds(kept.restore(), expected) && holds(of_child.restore(), other);
        _exit(began && is_right ? 0 : 1);
    }
    EXPECT_TRUE(holds(kept.restore(), expected));
    const Bytes replacing = content(1'000'000, generator_);
    Stash replaced = spilled(replacing);
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(holds(replaced.restore(), replacing));
    close(ends[0]);
    close(ends[1]);
}

// Threads compare with content made before: AddressSanitizer's malloc is not made for forks.
TEST_F(StashSpillTest, ForksWhileThreadsSpillAndRestore) {
    std::vector<Bytes> contents;
    Generator generator;
    for (int i = 0; i < 16; ++i) contents.push_back(content(1 + generator() % 300'000, generator));
    std::atomic<bool> is_over = false;
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 2; ++seed) {
        threads.emplace_back([&, seed] {
            for (std::size_t at = seed; !is_over; ++at) {
                const Bytes& expected = contents[at % contents.size()];
                EXPECT_TRUE(holds(spilled(expected).restore(), expected));
            }
        });
    }
    const Bytes expected = random(300'000);
    for (int i = 0; i < 10; ++i) {
        Stash kept = spilled(expected);
        EXPECT_TRUE(testing::holds_in_child([&] {
            Stash of_child = spilled(expected);
            return holds(kept.restore(), expected) && holds(of_child.restore(), expected);
        }));
        EXPECT_TRUE(holds(kept.restore(), expected));
    }
    is_over = true;
    for (std::thread& thread : threads) thread.join();
}

TEST_F(StashSpillTest, ProcessMayExitWhileThreadsRestore) {
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(testing::exit_code_of_child([&]() -> int {
                      static MemoryPool& pool = *new MemoryPool(PoolOptions{.name = "tensors"});
                      std::atomic<int> begun = 0;
                      for (unsigned seed = 0; seed < 2; ++seed) {
                          std::thread([&begun, seed] {
                              Generator generator(seed);
                              for (;;) {
                                  const Bytes expected = content(100'000, generator);
                                  Stash kept = stash(block_with(expected, pool),
                                                     {.method = seed == 0 ? StashMethod::spill
                                                                          : StashMethod::compress,
                                                      .folder = "."});
                                  (void)kept.restore();
                                  ++begun;
                              }
                          }).detach();
                      }
                      if (!testing::wait_until("four threads stash", [&] { return begun >= 4; }))
                          std::_Exit(1);
                      std::exit(0);
                  }),
                  0);
    }
}

}  // namespace
}  // namespace tensorpool::stashing
