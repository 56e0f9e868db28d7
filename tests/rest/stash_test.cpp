#include <tensorpool/stash.hpp>

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include <tensorpool/arena.hpp>
#include <tensorpool/snapshot.hpp>

#include "rest/test_content.hpp"

namespace tensorpool::stashing {
namespace {

constexpr DataType floats = DataType::of<float>();

const std::vector<DataType>& types() {
    static const std::vector<DataType> all = {
        DataType(),
        floats,
        DataType::of<std::int8_t>(),
        DataType::of<std::uint16_t>(),
        DataType::of<double>(),
        {.code = DataCode::floating, .bits = 16},
        {.code = DataCode::bfloat, .bits = 16},
        *find_ggml_type("Q8_0"),
    };
    return all;
}

class StashTest : public ::testing::Test {
protected:
    std::size_t in_use(const MemoryPool& pool) const { return pool.statistics().in_use_bytes; }

    MemoryPool pool_{PoolOptions{.name = "tensors"}};
    MemoryPool store_{PoolOptions{.name = "at rest"}};
    Generator generator_{1};
};

TEST_F(StashTest, ContentOfAnySizeComesBackExactly) {
    for (const std::size_t bytes :
         {1, 2, 63, 64, 65, 65'535, 65'536, 65'537, 999'999, 1 << 20, 5'000'001}) {
        const Bytes expected = content(bytes, generator_);
        Stash kept = stash(block_with(expected, pool_),
                           {.name = "weights", .type = floats, .pool = &store_});
        EXPECT_EQ(in_use(pool_), 0U);
        EXPECT_EQ(kept.size(), bytes);
        EXPECT_EQ(kept.bytes_at_rest(), in_use(store_));
        EXPECT_EQ(kept.bytes_spilled(), 0U);
        EXPECT_EQ(kept.name(), "weights");
        EXPECT_TRUE(holds(kept.restore(), expected)) << bytes;
        EXPECT_FALSE(kept);
        EXPECT_EQ(in_use(store_), 0U);
    }
    EXPECT_EQ(in_use(pool_), 0U);
}

TEST_F(StashTest, ACopyOfTheCallersMemoryComesBackExactly) {
    const Bytes expected = content(999'999, generator_);
    Stash kept(std::as_bytes(std::span(expected)), {.type = floats, .pool = &store_});
    EXPECT_EQ(kept.bytes_at_rest(), in_use(store_));
    EXPECT_TRUE(holds(kept.restore(pool_), expected));
    Stash again(std::as_bytes(std::span(expected)), {.pool = &store_});
    const PooledAllocation restored = again.restore();
    EXPECT_TRUE(get_global_memory_pool().owns(restored.get()));
    EXPECT_TRUE(holds(restored, expected));
    Stash empty(std::span<const std::byte>{});
    EXPECT_EQ(empty.size(), 0U);
    EXPECT_FALSE(empty.restore());
}

TEST_F(StashTest, EmptyHandlesAreContentToo) {
    Stash kept = stash(PooledAllocation());
    EXPECT_TRUE(kept);
    EXPECT_EQ(kept.size(), 0U);
    EXPECT_EQ(kept.bytes_at_rest(), 0U);
    EXPECT_FALSE(kept.restore());
    EXPECT_FALSE(kept);
    kept = stash(PooledAllocation());
    kept.restore_to({});
    EXPECT_FALSE(kept);
}

TEST_F(StashTest, ZerosTakeNoRoom) {
    Stash kept = stash(block_with(Bytes(64 << 20), pool_), {.type = floats, .pool = &store_});
    EXPECT_LT(kept.bytes_at_rest(), (64U << 20) / 900);
    EXPECT_EQ(in_use(store_), kept.bytes_at_rest());
}

TEST_F(StashTest, DefaultPoolIsNamedStash) {
    Stash kept = stash(block_with(content(1 << 20, generator_), pool_));
    std::size_t counted = 0;
    for (const PoolStatistics& pool : take_snapshot().pools)
        if (std::string(pool.name) == "stash") counted += pool.in_use_bytes;
    EXPECT_EQ(counted, kept.bytes_at_rest());
}

TEST_F(StashTest, RestoresToAnotherPoolOrToMemoryOfTheCaller) {
    MemoryPool other(PoolOptions{.name = "other"});
    const Bytes expected = content(300'000, generator_);
    Stash kept = stash(block_with(expected, pool_));
    const PooledAllocation block = kept.restore(other);
    EXPECT_TRUE(holds(block, expected));
    EXPECT_TRUE(other.owns(block.get()));

    kept = stash(block_with(expected, pool_));
    Bytes memory(expected.size());
    EXPECT_EQ(message_of([&] { kept.restore_to(std::span(memory).first(10)); }),
              "tensorpool: stash 'unnamed': found memory of 10 bytes, expected 300000");
    kept.restore_to(memory);
    EXPECT_TRUE(memory == expected);
    EXPECT_FALSE(kept);
}

TEST_F(StashTest, KeepsTheAlignment) {
    const Bytes expected = content(100'000, generator_);
    Stash kept = stash(block_with(expected, pool_, 16'384));
    const PooledAllocation block = kept.restore();
    EXPECT_TRUE(holds(block, expected));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % 16'384, 0U);
}

TEST_F(StashTest, CanBeMoved) {
    const Bytes expected = content(100'000, generator_);
    Stash first = stash(block_with(expected, pool_), {.pool = &store_});
    Stash second = std::move(first);
    EXPECT_FALSE(first);
    EXPECT_EQ(first.size(), 0U);
    EXPECT_EQ(first.name(), "");
    second = stash(block_with(Bytes(10), pool_), {.pool = &store_});
    EXPECT_TRUE(holds(second.restore(), Bytes(10)));
    EXPECT_EQ(in_use(store_), 0U);
}

TEST_F(StashTest, RestoringNothingIsAnError) {
    Stash none;
    const std::string expected =
        "the stash holds nothing; expected one that was neither restored nor moved from";
    EXPECT_THROW(none.restore(pool_), std::logic_error);
    EXPECT_THROW(none.restore_to({}), std::logic_error);
    EXPECT_EQ(message_of([&] { (void)none.restore(); }), "tensorpool: restore: " + expected);
    none.prefetch();
}

TEST_F(StashTest, OtherSourcesAreRefusedByName) {
    Arena arena;
    PooledAllocation block(arena, 1000);
    EXPECT_THROW(stash(std::move(block), {.name = "x"}), std::invalid_argument);
    EXPECT_EQ(message_of([&] { stash(std::move(block), {.name = "x"}); }),
              "tensorpool: stash 'x': found a block of a source of kind 'arena', expected one of a "
              "MemoryPool");
    EXPECT_TRUE(block);
}

TEST_F(StashTest, AbsurdOptionsAreRefused) {
    PooledAllocation block = block_with(Bytes(100), pool_);
    EXPECT_EQ(message_of([&] {
                  stash(std::move(block), {.name = "x", .method = static_cast<StashMethod>(77)});
              }),
              "tensorpool: stash 'x': method is 77, expected compress, spill or by_cost");
    for (const StashMethod method : {StashMethod::spill, StashMethod::by_cost}) {
        EXPECT_EQ(message_of([&] { stash(std::move(block), {.name = "x", .method = method}); }),
                  "tensorpool: stash 'x': no folder is given, expected one to spill to");
    }
    EXPECT_TRUE(holds(block, Bytes(100)));
}

TEST_F(StashTest, FailedStashKeepsTheBlock) {
    // Room for the workspace, and for some of the slabs.
    for (const std::size_t room : {std::size_t{256} << 10, std::size_t{4} << 20}) {
        MemoryPool small(PoolOptions{.name = "small", .max_capacity = room});
        Bytes expected(8 << 20);
        for (std::byte& byte : expected) byte = static_cast<std::byte>(generator_());
        PooledAllocation block = block_with(expected, pool_);
        EXPECT_THROW(stash(std::move(block), {.pool = &small}), AllocationError);
        EXPECT_TRUE(holds(block, expected));
        EXPECT_EQ(in_use(small), 0U);
    }
}

TEST_F(StashTest, FailedRestoreKeepsTheContent) {
    MemoryPool small(PoolOptions{.name = "small", .max_capacity = 1 << 20});
    const Bytes expected = content(2 << 20, generator_);
    Stash kept = stash(block_with(expected, pool_), {.pool = &store_});
    const std::size_t before = in_use(store_);
    EXPECT_THROW((void)kept.restore(small), AllocationError);
    EXPECT_TRUE(kept);
    EXPECT_EQ(in_use(store_), before);
    EXPECT_EQ(in_use(small), 0U);
    EXPECT_TRUE(holds(kept.restore(), expected));
}

/// One thread's stashes against a map of bytes.
void stash_and_restore(unsigned seed, MemoryPool& pool, MemoryPool& store) {
    Generator generator(seed);
    struct Kept {
        Stash stash;
        Bytes expected;
    };
    std::map<unsigned, Kept> all;
    for (int step = 0; step < 100; ++step) {
        const auto key = static_cast<unsigned>(generator() % 12);
        const auto found = all.find(key);
        if (found == all.end()) {
            const std::size_t bytes =
                generator() % 5 == 0 ? 1 + generator() % 3'000'000 : 1 + generator() % 100'000;
            Bytes expected = content(bytes, generator);
            Stash made = stash(block_with(expected, pool),
                               {.type = types()[generator() % types().size()], .pool = &store});
            all.emplace(key, Kept{std::move(made), std::move(expected)});
        } else if (generator() % 4 == 0) {
            all.erase(found);
        } else {
            ASSERT_TRUE(holds(found->second.stash.restore(), found->second.expected));
            all.erase(found);
        }
    }
}

TEST_F(StashTest, ThreadsStashAndRestoreAtOnce) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i)
        threads.emplace_back([this, i] { stash_and_restore(i, pool_, store_); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(in_use(pool_), 0U);
    EXPECT_EQ(in_use(store_), 0U);
}

}  // namespace
}  // namespace tensorpool::stashing
