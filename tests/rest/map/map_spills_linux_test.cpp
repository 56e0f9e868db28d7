#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "rest/map/map_content.hpp"
#include "rest/spill_files_linux.hpp"
#include "support/child_process.hpp"

namespace tensorpool::stashing {
namespace {

/// The tests run in the build folder, which lies on a disk unless the machine has none.
class StashedMapSpillTest : public ::testing::Test {
protected:
    void SetUp() override {
        const std::string problem = message_of([] { Map({.folder = "."}); });
        if (!problem.empty()) GTEST_SKIP() << problem;
    }
};

TEST_F(StashedMapSpillTest, TensorsThatDoNotShrinkAreSpilled) {
    Map map({.memory_bytes = 2 * MiB, .folder = "."});
    for (int key = 0; key < 8; ++key) put(map, key, random(MiB, static_cast<unsigned>(key)));
    StashedMapStatistics now = map.statistics();
    EXPECT_EQ(now.memory_bytes, 2 * MiB);
    EXPECT_EQ(now.stashed_bytes, 6 * MiB);
    EXPECT_GE(now.spilled_bytes, 6 * MiB);
    EXPECT_LT(now.compressed_bytes, MiB / 64);
    for (int key = 0; key < 8; ++key) {
        map.prefetch(key);
        EXPECT_TRUE(holds(map.get(key), random(MiB, static_cast<unsigned>(key))));
    }
    for (int key = 0; key < 8; ++key) EXPECT_TRUE(map.erase(key));
    EXPECT_EQ(map.statistics().spilled_bytes, 0U);
    EXPECT_EQ(spill_file(), -1);
}

TEST_F(StashedMapSpillTest, SmallTensorsThatShrinkRestInMemoryAndOthersInFiles) {
    // Of every second tensor, every second byte is random: it takes a little more than half.
    const auto bytes_of = [](int key) {
        Bytes bytes = random(16 << 10, static_cast<unsigned>(key));
        for (std::size_t i = 1; key % 2 == 0 && i < bytes.size(); i += 2)
            bytes[i] = std::byte{0x3F};
        return bytes;
    };
    Map map({.memory_bytes = 256 << 10, .folder = ".", .type = DataType::of<std::uint16_t>()});
    for (int key = 0; key < 64; ++key) put(map, key, bytes_of(key));
    const StashedMapStatistics now = map.statistics();
    EXPECT_LE(now.memory_bytes, 256U << 10);
    EXPECT_GE(now.compressed_bytes, 24U * (8 << 10));
    EXPECT_LE(now.compressed_bytes, 24U * (9 << 10));
    EXPECT_GE(now.spilled_bytes, 24U * (16 << 10));
    EXPECT_LE(now.spilled_bytes, 24U * (17 << 10));
    EXPECT_EQ(now.failures, 0U) << map.last_failure();
    for (int key = 0; key < 64; ++key) EXPECT_TRUE(holds(map.get(key), bytes_of(key))) << key;
}

TEST_F(StashedMapSpillTest, TensorsOfAFewBytesStayInMemory) {
    Map map({.memory_bytes = 1, .folder = "."});
    for (int key = 0; key < 40; ++key) {
        const std::size_t bytes = static_cast<std::size_t>(key) * 2 + 1;
        put(map, key, key % 2 == 0 ? random(bytes, 7) : Bytes(bytes));
    }
    // Of 1 to 63 bytes; the records of a stash take more.
    EXPECT_GE(map.statistics().memory_bytes, 32U * 32);
    EXPECT_LE(map.statistics().spilled_bytes, 8U * (79 + 40));
    for (int key = 0; key < 40; ++key) {
        const std::size_t bytes = static_cast<std::size_t>(key) * 2 + 1;
        EXPECT_TRUE(holds(map.get(key), key % 2 == 0 ? random(bytes, 7) : Bytes(bytes))) << key;
    }
}

TEST_F(StashedMapSpillTest, CompressedTensorsBeyondTheirLimitAreSpilled) {
    Map map({.memory_bytes = MiB, .compressed_bytes = 256 << 10, .folder = "."});
    for (int key = 0; key < 32; ++key) put(map, key, numbered(key));
    StashedMapStatistics now = map.statistics();
    EXPECT_EQ(now.memory_bytes, MiB);
    EXPECT_GT(now.compressed_bytes, 0U);
    EXPECT_LE(now.compressed_bytes, 256U << 10);
    EXPECT_GT(now.spilled_bytes, 0U);
    EXPECT_GT(now.spills, 0U);
    for (int key = 0; key < 32; ++key) EXPECT_TRUE(holds(map.get(key), numbered(key))) << key;
    EXPECT_EQ(map.statistics().failures, 0U);
}

TEST_F(StashedMapSpillTest, ASixteenthOfTheBudgetMayBeCompressedByDefault) {
    Budget budget("cache", {.hard = 8 * MiB});
    Map map({.budget = &budget, .memory_bytes = 2 * MiB, .folder = "."});
    for (int key = 0; key < 64; ++key) put(map, key, numbered(key));
    StashedMapStatistics now = map.statistics();
    EXPECT_GT(now.compressed_bytes, 0U);
    EXPECT_LE(now.compressed_bytes, MiB / 2);
    EXPECT_GT(now.spills, 0U);
    const std::size_t spills = now.spills;
    budget.set_limits({});
    for (int key = 64; key < 128; ++key) put(map, key, numbered(key));
    EXPECT_EQ(map.statistics().spills, spills);
    EXPECT_GT(map.statistics().compressed_bytes, MiB / 2);
}

TEST_F(StashedMapSpillTest, CompressedTensorsAreGivenLast) {
    Budget budget("cache");
    Map map({.budget = &budget, .folder = "."});
    for (int key = 0; key < 8; ++key) put(map, key, numbered(key));
    budget.reclaim(7 * MiB);
    EXPECT_EQ(map.statistics().spilled_bytes, 0U);
    EXPECT_GT(map.statistics().compressed_bytes, 0U);
    budget.reclaim(8 * MiB);
    StashedMapStatistics now = map.statistics();
    EXPECT_EQ(now.memory_bytes, 0U);
    EXPECT_EQ(now.spills, 8U);
    for (int key = 0; key < 8; ++key) EXPECT_TRUE(holds(map.get(key), numbered(key)));
}

TEST_F(StashedMapSpillTest, SpilledTensorsThatWereOnlyReadAreNotWrittenAgain) {
    Map map({.memory_bytes = MiB, .folder = "."});
    for (int key = 0; key < 4; ++key) put(map, key, random(MiB, static_cast<unsigned>(key)));
    for (int key = 0; key < 4; ++key) (void)map.read(key);
    const std::size_t spilled = map.statistics().spilled_bytes;
    EXPECT_GE(spilled, 4 * MiB);
    for (int round = 0; round < 2; ++round) {
        for (int key = 0; key < 4; ++key) {
            const StashedTensorView view = map.read(key);
            ASSERT_TRUE(holds(view, random(MiB, static_cast<unsigned>(key))));
            map.prefetch(key);  // does nothing
            overwrite(view);
        }
    }
    EXPECT_EQ(map.statistics().spilled_bytes, spilled);
    map.get(3).as<std::byte>()[5] = std::byte{7};
    EXPECT_LE(map.statistics().spilled_bytes, spilled - MiB);
    (void)map.read(1);
    EXPECT_EQ(map.read(3).as<const std::byte>()[5], std::byte{7});
}

TEST_F(StashedMapSpillTest, KeptBytesOfPinnedTensorsAreSpilled) {
    Budget budget("cache");
    Map map({.budget = &budget, .folder = "."});
    put(map, 1, numbered(1));
    budget.reclaim(1);
    {
        const StashedTensorView view = map.read(1);
        EXPECT_GT(budget.reclaim(1), 0U);
        const StashedMapStatistics now = map.statistics();
        EXPECT_EQ(now.spills, 1U);
        EXPECT_GT(now.spilled_bytes, 0U);
        EXPECT_EQ(now.memory_bytes, MiB);
        EXPECT_EQ(now.stashed_bytes, 0U);
        overwrite(view);
    }
    EXPECT_GE(budget.reclaim(1), MiB);
    EXPECT_EQ(map.statistics().stashed_bytes, MiB);
    EXPECT_TRUE(holds(map.read(1), numbered(1)));
}

TEST_F(StashedMapSpillTest, KeptBytesAreDroppedIfTheDiskIsFull) {
    EXPECT_TRUE(testing::holds_in_child([&] {
        Budget budget("cache");
        Map map({.budget = &budget, .folder = "."});
        put(map, 1, numbered(1));
        budget.reclaim(1);
        StashedTensorView view = map.read(1);
        const rlimit limit = {1 << 10, 1 << 10};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
        if (budget.reclaim(1) == 0) return false;
        const StashedMapStatistics now = map.statistics();
        return now.failures == 1 && now.compressed_bytes == 0 && now.spilled_bytes == 0 &&
               holds(view, numbered(1)) && !map.last_failure().empty();
    }));
}

TEST_F(StashedMapSpillTest, HardLimitAloneSufficesWithAFolder) {
    Budget budget("cache", {.hard = 12 * MiB});
    Map map({.budget = &budget, .folder = "."});
    for (int key = 0; key < 24; ++key) put(map, key, random(MiB, static_cast<unsigned>(key)));
    for (int key = 24; key < 48; ++key) put(map, key, numbered(key));
    for (int round = 0; round < 2; ++round) {
        for (int key = 0; key < 24; ++key)
            ASSERT_TRUE(holds(map.get(key), random(MiB, static_cast<unsigned>(key))));
        for (int key = 24; key < 48; ++key) ASSERT_TRUE(holds(map.get(key), numbered(key)));
    }
    EXPECT_LE(budget.statistics().peak_bytes, 12 * MiB);
    EXPECT_EQ(map.statistics().failures, 0U) << map.last_failure();
}

TEST_F(StashedMapSpillTest, FullDiskLosesNothing) {
    // A limit on file sizes stands for the disk.
    EXPECT_TRUE(testing::holds_in_child([&] {
        Map map({.name = "kv", .memory_bytes = 6 * MiB, .folder = "."});
        const rlimit limit = {3 << 20, 3 << 20};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
        for (int key = 0; key < 12; ++key) put(map, key, random(MiB, static_cast<unsigned>(key)));
        const StashedMapStatistics now = map.statistics();
        bool is_right =
            now.failures > 0 && now.spilled_bytes > 0 && now.memory_bytes > 6 * MiB &&
            map.last_failure() == "tensorpool: stash 'kv': folder '.': write: File too large";
        for (int key = 0; key < 12; ++key)
            is_right = is_right && holds(map.get(key), random(MiB, static_cast<unsigned>(key)));
        return is_right;
    }));
}

TEST_F(StashedMapSpillTest, DamageIsAnErrorThatNamesTheMapAndKeepsTheTensorAtRest) {
    Map map({.name = "kv", .memory_bytes = 1, .folder = "."});
    put(map, 1, random(200'000, 1));
    const int file = spill_file();
    std::byte byte{};
    ASSERT_EQ(pread(file, &byte, 1, 150'000), 1);
    byte ^= std::byte{16};
    ASSERT_EQ(pwrite(file, &byte, 1, 150'000), 1);
    for (int times = 0; times < 2; ++times) {
        const std::string message = message_of([&] { (void)map.get(1); });
        EXPECT_NE(message.find("stash 'kv'"), std::string::npos) << message;
        EXPECT_NE(message.find("damaged"), std::string::npos) << message;
        EXPECT_TRUE(map.contains(1));
        EXPECT_EQ(map.statistics().memory_bytes, 0U);
    }
    EXPECT_EQ(map.statistics().failures, 2U);
    byte ^= std::byte{16};
    ASSERT_EQ(pwrite(file, &byte, 1, 150'000), 1);
    EXPECT_TRUE(holds(map.get(1), random(200'000, 1)));
    put(map, 2, random(200'000, 2));
    EXPECT_EQ(map.statistics().memory_bytes, 0U) << "failed calls left no pin";
}

TEST_F(StashedMapSpillTest, ThreadsAgreeWithAMapOfBytes) {
    run_against_model({.memory_bytes = MiB, .compressed_bytes = 128 << 10, .folder = "."});
    Budget budget("cache", {.soft = 2 * MiB, .hard = 12 * MiB});
    run_against_model({.budget = &budget, .folder = "."});
    EXPECT_LE(budget.statistics().peak_bytes, 12 * MiB);
}

TEST_F(StashedMapSpillTest, ParentAndChildBothReadWhatExistedAtTheFork) {
    Map map({.memory_bytes = 2 * MiB, .compressed_bytes = 64 << 10, .folder = "."});
    const auto bytes_of = [](int key) {
        return key % 2 == 0 ? numbered(key) : random(MiB, static_cast<unsigned>(key));
    };
    for (int key = 0; key < 8; ++key) put(map, key, bytes_of(key));
    const StashedTensor pinned = map.get(3);
    const auto all_are_right = [&] {
        bool is_right = holds(pinned, bytes_of(3));
        for (int key = 0; key < 8; ++key) is_right = is_right && holds(map.get(key), bytes_of(key));
        return is_right;
    };
    EXPECT_TRUE(testing::holds_in_child([&] {
        bool is_right = all_are_right();
        put(map, 9, numbered(9));
        return is_right && holds(map.get(9), numbered(9));
    }));
    EXPECT_TRUE(all_are_right());
    EXPECT_FALSE(map.contains(9));
}

// Threads compare with content made before: AddressSanitizer's malloc is not made for forks.
TEST_F(StashedMapSpillTest, ForksWhileThreadsMoveTensors) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer follows at most 64 locks of a thread; a fork takes more, some "
                    "for each thread";
#endif
    Budget budget("cache", {.soft = 4 * MiB, .hard = 24 * MiB});
    Map map({.budget = &budget, .memory_bytes = 2 * MiB, .compressed_bytes = MiB, .folder = "."});
    std::vector<Bytes> contents;
    for (int key = 0; key < 16; ++key) {
        contents.push_back(key % 2 == 0 ? numbered(key, 300'000)
                                        : random(300'000, static_cast<unsigned>(key)));
        put(map, key, contents.back());
    }
    std::atomic<bool> is_over = false;
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 3; ++seed) {
        threads.emplace_back([&, seed] {
            Generator generator(seed);
            while (!is_over) {
                const int key = static_cast<int>(generator() % 16);
                const Bytes& expected = contents[static_cast<std::size_t>(key)];
                EXPECT_TRUE(generator() % 2 == 0 ? holds(map.get(key), expected)
                                                 : holds(map.read(key), expected));
            }
        });
    }
    for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(testing::holds_in_child([&] {
            for (int key = 0; key < 16; ++key)
                if (!holds(map.get(key), contents[static_cast<std::size_t>(key)])) return false;
            return true;
        }));
    }
    is_over = true;
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tensorpool::stashing
