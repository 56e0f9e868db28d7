#include "blocks/magazine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "blocks/is_mapped.hpp"

namespace tensorpool::blocks {
namespace {

using testing::is_mapped;

class MagazineStoreTest : public ::testing::Test {
protected:
    std::vector<Magazine*> make(unsigned count) {
        std::vector<Magazine*> magazines(count);
        for (Magazine*& magazine : magazines) magazine = store_.make();
        return magazines;
    }

    void destroy(const std::vector<Magazine*>& magazines) {
        MagazineList list;
        for (Magazine* const magazine : magazines) list.push_front(*magazine);
        store_.destroy(list);
        EXPECT_TRUE(list.empty());
    }

    static std::size_t mapped(const std::vector<Magazine*>& magazines) {
        return static_cast<std::size_t>(
            std::count_if(magazines.begin(), magazines.end(), is_mapped));
    }

    MagazineStore store_;
};

TEST(SystemChunks, AreAsLargeAsRequestedAndUnmappedWhenFreed) {
    const std::size_t bytes = 2 * platform::page_bytes();
    std::vector<char*> chunks(8);
    for (char*& chunk : chunks) {
        chunk = SystemChunks::malloc(bytes);
        ASSERT_NE(chunk, nullptr);
    }
    for (char* const chunk : chunks) std::memset(chunk, 1, bytes);
    for (char* const chunk : chunks) SystemChunks::free(chunk);
    EXPECT_TRUE(std::none_of(chunks.begin(), chunks.end(), is_mapped));
}

TEST_F(MagazineStoreTest, MakesEmptyMagazinesThatDoNotOverlap) {
    std::vector<Magazine*> magazines = make(1000);
    std::sort(magazines.begin(), magazines.end());
    for (Magazine* const magazine : magazines) {
        ASSERT_NE(magazine, nullptr);
        EXPECT_EQ(magazine->count, 0U);
        std::fill(std::begin(magazine->blocks), std::end(magazine->blocks), magazine);
    }
    for (std::size_t i = 1; i < magazines.size(); ++i) {
        ASSERT_GE(magazines[i], magazines[i - 1] + 1);
        ASSERT_EQ(magazines[i]->blocks[magazine_room - 1], magazines[i]);
    }
}

TEST_F(MagazineStoreTest, CountsTheBytesOfExistingMagazines) {
    EXPECT_EQ(store_.bytes_in_use(), 0U);
    const std::vector<Magazine*> magazines = make(100);
    EXPECT_EQ(store_.bytes_in_use(), 100 * sizeof(Magazine));
    destroy({magazines.begin(), magazines.begin() + 40});
    EXPECT_EQ(store_.bytes_in_use(), 60 * sizeof(Magazine));
    destroy({magazines.begin() + 40, magazines.end()});
    EXPECT_EQ(store_.bytes_in_use(), 0U);
}

TEST_F(MagazineStoreTest, ReturnsAllMemoryWhenAllAreDestroyed) {
    const std::vector<Magazine*> magazines = make(1000);
    ASSERT_EQ(mapped(magazines), magazines.size());
    destroy(magazines);
    EXPECT_EQ(mapped(magazines), 0U);
}

TEST_F(MagazineStoreTest, ReturnsMemoryForAnyOrderOfDestruction) {
    std::vector<Magazine*> magazines = make(1000);
    std::vector<Magazine*> shuffled;
    for (std::size_t from = 0; from < 7; ++from) {
        for (std::size_t i = from; i < magazines.size(); i += 7) shuffled.push_back(magazines[i]);
    }
    destroy({shuffled.begin() + 500, shuffled.end()});
    destroy({shuffled.begin(), shuffled.begin() + 500});
    EXPECT_EQ(mapped(magazines), 0U);
}

TEST_F(MagazineStoreTest, KeepsTheMemoryOfExistingMagazines) {
    const std::vector<Magazine*> magazines = make(1000);
    std::vector<Magazine*> kept;
    std::vector<Magazine*> others;
    for (std::size_t i = 0; i < magazines.size(); ++i)
        (i % 200 == 0 ? kept : others).push_back(magazines[i]);
    for (Magazine* const magazine : kept) magazine->count = 7;
    destroy(others);
    for (Magazine* const magazine : kept) EXPECT_EQ(magazine->count, 7U);
    // A chunk holds far less than 200 magazines, so most chunks have none of these five.
    EXPECT_LT(mapped(magazines), magazines.size() / 2);
    destroy(kept);
    EXPECT_EQ(mapped(magazines), 0U);
}

TEST_F(MagazineStoreTest, MemoryOfDestroyedMagazinesIsReused) {
    const std::vector<Magazine*> magazines = make(10);
    destroy({magazines.begin() + 1, magazines.end()});
    const std::vector<Magazine*> again = make(9);
    EXPECT_EQ(std::set<Magazine*>(again.begin(), again.end()),
              std::set<Magazine*>(magazines.begin() + 1, magazines.end()));
}

TEST_F(MagazineStoreTest, DestroyingNothingIsHarmless) {
    destroy({});
    EXPECT_NE(store_.make(), nullptr);
}

TEST(MagazineStore, DestructorReturnsAllMemoryWithMagazinesInUse) {
    Magazine* magazine = nullptr;
    {
        MagazineStore store;
        magazine = store.make();
        EXPECT_TRUE(is_mapped(magazine));
    }
    EXPECT_FALSE(is_mapped(magazine));
}

TEST(MagazineStore, ThreadsMakeAndDestroyConcurrently) {
    MagazineStore store;
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&store] {
            for (unsigned round = 0; round < 200; ++round) {
                MagazineList list;
                for (unsigned i = 0; i < 10; ++i) {
                    Magazine& magazine = *store.make();
                    std::fill(std::begin(magazine.blocks), std::end(magazine.blocks), &list);
                    list.push_front(magazine);
                }
                for (const Magazine& magazine : list) ASSERT_EQ(magazine.blocks[9], &list);
                store.destroy(list);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(store.bytes_in_use(), 0U);
}

/// A magazine of `count` made-up blocks, whose places among all blocks `place` returns.
template <class Place>
bool splits_lines_of(std::size_t block_bytes, unsigned count, Place place) {
    Magazine magazine;
    magazine.count = count;
    for (unsigned i = 0; i != count; ++i) {
        magazine.blocks[i] = reinterpret_cast<void*>(0x10000 + place(i) * block_bytes);
    }
    return splits_lines(magazine, block_bytes);
}

TEST(SplitsLines, IsFalseForAdjacentBlocks) {
    for (const std::size_t bytes : {16, 48, 80, 224}) {
        EXPECT_FALSE(splits_lines_of(bytes, 128, [](unsigned i) { return i; })) << bytes;
        EXPECT_FALSE(splits_lines_of(bytes, 128, [](unsigned i) { return 128 - i; })) << bytes;
    }
}

TEST(SplitsLines, IsTrueForEverySecondBlock) {
    for (const std::size_t bytes : {16, 48, 80, 224}) {
        EXPECT_TRUE(splits_lines_of(bytes, 128, [](unsigned i) { return 2 * i; })) << bytes;
    }
    EXPECT_TRUE(splits_lines_of(16, 2, [](unsigned i) { return 2 * i; }));
}

TEST(SplitsLines, IsTrueForPairsOfBlocksWhereverTheyBegin) {
    for (const unsigned begin : {0U, 1U}) {
        const auto place = [=](unsigned i) { return (i + begin) / 2 * 5 + (i + begin) % 2; };
        EXPECT_TRUE(splits_lines_of(16, 128, place)) << begin;
    }
}

TEST(SplitsLines, IsFalseForWholeLinesAndForOneBlock) {
    const auto every_second = [](unsigned i) { return 2 * i; };
    EXPECT_FALSE(splits_lines_of(64, 128, every_second));
    EXPECT_FALSE(splits_lines_of(192, 128, every_second));
    EXPECT_FALSE(splits_lines_of(16, 1, every_second));
    EXPECT_FALSE(splits_lines_of(16, 0, every_second));
}

}  // namespace
}  // namespace tensorpool::blocks
