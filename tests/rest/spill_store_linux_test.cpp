#include "rest/spill_store.hpp"

#include <gtest/gtest.h>

#include "rest/spill_files_linux.hpp"
#include "rest/test_content.hpp"
#include "support/child_process.hpp"

namespace tensorpool::stashing {
namespace {

/// The tests run in the build folder, which lies on a disk unless the machine has none.
class SpillStoreTest : public ::testing::Test {
protected:
    void SetUp() override {
        const std::string problem = message_of([] { (void)SpillStore::of_folder(".", "x"); });
        if (!problem.empty()) GTEST_SKIP() << problem;
    }
};

void free_one(SpillStore& store, std::uint64_t position, std::size_t bytes) {
    Slab slab;
    slab.position = position;
    slab.bytes = bytes;
    store.free(std::span(&slab, 1));
}

TEST_F(SpillStoreTest, FolderHasOneStoreWhileItIsInUse) {
    auto first = SpillStore::of_folder(".", "x");
    EXPECT_EQ(SpillStore::of_folder(".", "y"), first);
    EXPECT_NE(SpillStore::of_folder("..", "y"), first);
    const std::weak_ptr<SpillStore> weak = first;
    first.reset();
    EXPECT_TRUE(weak.expired());
}

TEST_F(SpillStoreTest, FreedSlabsGoBackToTheDisk) {
    const auto store = SpillStore::of_folder(".", "x");
    const Bytes bytes(100'000, std::byte{1});
    const std::size_t before = disk_space();
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    ASSERT_FALSE(store->write(bytes, first));
    ASSERT_FALSE(store->write(bytes, second));
    ASSERT_FALSE(store->settle(first, bytes.size()));
    ASSERT_FALSE(store->settle(second, bytes.size()));
    EXPECT_EQ(second % platform::SpillFile::unit, 0U);
    EXPECT_GE(disk_space(), before + 200'000);
    free_one(*store, first, bytes.size());
    EXPECT_LT(disk_space(), before + 150'000);
    Bytes back(bytes.size());
    ASSERT_FALSE(store->read(second, back, platform::ReadFrom::disk));
    EXPECT_TRUE(back == bytes);
}

TEST_F(SpillStoreTest, FreedPositionsAreUsedAgain) {
    const auto store = SpillStore::of_folder(".", "x");
    const Bytes bytes(100'000, std::byte{1});
    std::array<std::uint64_t, 4> positions = {};
    for (std::uint64_t& position : positions) ASSERT_FALSE(store->write(bytes, position));
    for (const std::size_t freed : {2, 0, 1}) free_one(*store, positions[freed], bytes.size());
    std::uint64_t again = 0;
    ASSERT_FALSE(store->write(Bytes(250'000, std::byte{2}), again));
    EXPECT_EQ(again, positions[0]) << "neighbors have joined";
    Bytes back(bytes.size());
    ASSERT_FALSE(store->read(positions[3], back, platform::ReadFrom::disk));
    EXPECT_TRUE(back == bytes);
}

TEST(FreeRanges, AreGivenOutOnceAndJoin) {
    constexpr std::uint64_t all = 1000;
    FreeRanges ranges;
    ranges.add(0, all);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    std::vector<bool> in_use(all);
    Generator generator{1};
    for (int i = 0; i < 10'000; ++i) {
        const std::uint64_t bytes = 1 + generator() % 100;
        if (const auto position = generator() % 2 == 0 ? ranges.take(bytes) : std::nullopt) {
            for (std::uint64_t at = *position; at != *position + bytes; ++at) {
                ASSERT_FALSE(in_use.at(at));
                in_use[at] = true;
            }
            taken.emplace_back(*position, bytes);
        } else if (!taken.empty()) {
            std::swap(taken[generator() % taken.size()], taken.back());
            const auto [begin, count] = taken.back();
            taken.pop_back();
            for (std::uint64_t at = begin; at != begin + count; ++at) in_use[at] = false;
            ranges.add(begin, count);
        }
    }
    for (const auto& [begin, count] : taken) ranges.add(begin, count);
    EXPECT_EQ(ranges.take(all + 1), std::nullopt);
    EXPECT_EQ(ranges.take(all), 0U);
    EXPECT_EQ(ranges.take(1), std::nullopt);
}

TEST_F(SpillStoreTest, FreesSlabsThatAreNoNeighbors) {
    const auto store = SpillStore::of_folder(".", "x");
    const Bytes bytes(8192, std::byte{1});
    std::vector<Slab> slabs(3);
    Slab kept;
    for (Slab* const slab : {&slabs[0], &slabs[1], &kept, &slabs[2]}) {
        slab->bytes = bytes.size();
        ASSERT_FALSE(store->write(bytes, slab->position));
    }
    store->free(slabs);
    Bytes back(bytes.size());
    for (const Slab& slab : slabs) {
        ASSERT_FALSE(store->read(slab.position, back, platform::ReadFrom::disk));
        EXPECT_TRUE(back == Bytes(bytes.size()));
    }
    ASSERT_FALSE(store->read(kept.position, back, platform::ReadFrom::disk));
    EXPECT_TRUE(back == bytes);
}

TEST_F(SpillStoreTest, ForkRetiresTheStoreInBothProcesses) {
    const auto store = SpillStore::of_folder(".", "x");
    const Bytes bytes(10'000, std::byte{1});
    std::uint64_t position = 0;
    ASSERT_FALSE(store->write(bytes, position));
    const auto is_retired = [&] {
        free_one(*store, position, bytes.size());  // does nothing
        Bytes back(bytes.size());
        return !store->is_present() && SpillStore::of_folder(".", "x") != store &&
               !store->read(position, back, platform::ReadFrom::disk) && back == bytes;
    };
    EXPECT_TRUE(testing::holds_in_child(is_retired));
    EXPECT_TRUE(is_retired());
}

}  // namespace
}  // namespace tensorpool::stashing
