#include "rest/encoded_bytes.hpp"

#include <gtest/gtest.h>

#include "rest/stash_state.hpp"
#include "rest/test_content.hpp"

namespace tensorpool::stashing {
namespace {

class EncodedBytesTest : public ::testing::Test {
protected:
    Bytes random(std::size_t bytes) {
        Bytes all(bytes);
        for (std::byte& byte : all) byte = static_cast<std::byte>(generator_());
        return all;
    }
    std::size_t in_use() const { return store_.statistics().in_use_bytes; }

    MemoryPool store_{PoolOptions{.name = "at rest"}};
    Generator generator_{1};
};

Bytes all_of(const EncodedBytes& encoded) {
    Bytes all;
    for (const Slab& slab : encoded.slabs())
        all.insert(all.end(), slab.memory, slab.memory + slab.bytes);
    all.insert(all.end(), encoded.tail().begin(), encoded.tail().end());
    return all;
}

TEST_F(EncodedBytesTest, BlocksTakeNoMoreThanTheirBytes) {
    for (const std::size_t bytes : {64UL, 65UL, 127UL, 4120UL, 10'812UL, 65'535UL, 65'560UL,
                                    933'000UL, slab_bytes - 1, slab_bytes}) {
        const Bytes expected = random(bytes);
        EncodedBytes encoded(store_, nullptr);
        encoded.add(expected, "x");
        EXPECT_EQ(encoded.size(), bytes);
        EXPECT_EQ(in_use(), bytes - bytes % 64) << bytes;
        EXPECT_EQ(encoded.bytes_in_memory(), in_use());
        EXPECT_EQ(encoded.bytes_in_file(), 0U);
        EXPECT_EQ(all_of(encoded), expected);
    }
    EXPECT_EQ(in_use(), 0U);
}

TEST_F(EncodedBytesTest, FewBytesTakeTheSmallestBlock) {
    const Bytes expected = random(25);
    EncodedBytes encoded(store_, nullptr);
    encoded.add(expected, "x");
    EXPECT_EQ(in_use(), 64U);
    EXPECT_EQ(encoded.bytes_in_memory(), 64U);
    EXPECT_EQ(all_of(encoded), expected);
}

TEST_F(EncodedBytesTest, RefusedBytesLeaveWhatItHeld) {
    MemoryPool small(PoolOptions{.name = "small", .max_capacity = 3 << 20});
    const Bytes slab = random(slab_bytes);
    EncodedBytes encoded(small, nullptr);
    const auto fill = [&] {
        for (;;) encoded.add(slab, "x");
    };
    EXPECT_THROW(fill(), AllocationError);
    const std::size_t before = small.statistics().in_use_bytes;
    EXPECT_EQ(encoded.size(), before);
    EXPECT_THROW(encoded.add(std::span(slab).first(slab_bytes - 1), "x"), AllocationError);
    EXPECT_EQ(encoded.size(), before);
    EXPECT_EQ(small.statistics().in_use_bytes, before);
    for (const Slab& held : encoded.slabs())
        EXPECT_EQ(std::memcmp(held.memory, slab.data(), slab_bytes), 0);
}

TEST_F(EncodedBytesTest, MovedBytesAreFreedOnce) {
    const Bytes first = random(1000);
    const Bytes second = random(2000);
    EncodedBytes encoded(store_, nullptr);
    encoded.add(first, "x");
    EncodedBytes moved(std::move(encoded));
    EXPECT_EQ(all_of(moved), first);
    encoded = EncodedBytes(store_, nullptr);
    EXPECT_EQ(encoded.size(), 0U);
    encoded.add(second, "x");
    moved = std::move(encoded);
    EXPECT_EQ(all_of(moved), second);
    moved = EncodedBytes(store_, nullptr);
    encoded = EncodedBytes(store_, nullptr);
    EXPECT_EQ(in_use(), 0U);
}

TEST_F(EncodedBytesTest, PiecesOfAnyLengthComeBack) {
    std::vector<Bytes> pieces;
    for (int i = 0; i < 300; ++i)
        pieces.push_back(random(generator_() % (i % 3 == 0 ? 65'556 : 300)));
    const std::string name = "x";
    EncodedBytes encoded(store_, nullptr);
    {
        EncodedWriter writer(encoded, store_, pieces.size(), 65'556, name);
        for (const Bytes& piece : pieces) {
            std::ranges::copy(piece, writer.room().begin());
            writer.take(piece.size());
        }
        writer.finish();
    }
    EXPECT_GT(encoded.slabs().size(), 3U);
    EXPECT_LE(in_use(), encoded.size());
    EncodedReader reader(encoded, store_, platform::ReadFrom::disk, 65'556, name);
    for (const Bytes& piece : pieces) {
        const auto read = reader.next();
        ASSERT_EQ(Bytes(read.begin(), read.end()), piece);
    }
    EXPECT_TRUE(reader.next().empty());
}

// Bytes that hardly shrink took 1.07 of their encoding in large blocks, and twice of it in small.
TEST_F(EncodedBytesTest, WhatRestsIsPacked) {
    const DataType floats = DataType::of<float>();
    for (const std::size_t bytes :
         {4UL << 10, 6000UL, 16UL << 10, 60'000UL, 1UL << 20, 32UL << 20}) {
        for (const bool are_weights : {false, true}) {
            std::vector<std::unique_ptr<StashState>> states;
            std::size_t encoded = 0;
            const std::size_t count = std::max<std::size_t>(1, (4 << 20) / bytes);
            for (std::size_t i = 0; i < count; ++i) {
                Bytes content = random(bytes);
                // Signs, exponents near zero, and random fractions.
                for (std::size_t at = 3; are_weights && at < bytes; at += 4)
                    content[at] = (content[at] & std::byte{0x80}) | std::byte{0x3C};
                states.push_back(std::make_unique<StashState>(
                    content, StashState::Origin(), StashOptions{.type = floats, .pool = &store_}));
                encoded += states.back()->encoded().size();
            }
            EXPECT_LE(in_use() * 100, encoded * 101) << bytes;
            EXPECT_LE(in_use() * 1000, count * bytes * 1005) << bytes;
            if (are_weights) {
                EXPECT_LE(in_use() * 10, count * bytes * 9) << bytes;
            }
        }
    }
}

}  // namespace
}  // namespace tensorpool::stashing
