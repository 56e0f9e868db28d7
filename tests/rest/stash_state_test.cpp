#include "rest/stash_state.hpp"
#include "rest/spill_store.hpp"

#include <gtest/gtest.h>

#include "rest/test_content.hpp"

namespace tensorpool::stashing {
namespace {

class StashStateTest : public ::testing::Test {
protected:
    MemoryPool store_{PoolOptions{.name = "at rest"}};
    Generator generator_{1};
};

TEST_F(StashStateTest, PacksPiecesIntoSlabs) {
    Bytes random(3 << 20);
    for (std::byte& byte : random) byte = static_cast<std::byte>(generator_());
    StashState state(random, {}, {.pool = &store_});
    ASSERT_EQ(state.slabs().size(), 4U);
    std::size_t pieces = 0;
    for (const Slab& slab : state.slabs()) {
        EXPECT_LE(slab.bytes, slab_bytes);
        EXPECT_EQ(slab.memory.size(), slab.bytes);
        pieces += slab.pieces;
    }
    EXPECT_EQ(pieces, 48U);
    EXPECT_EQ(state.bytes_in_memory(), store_.statistics().in_use_bytes);
}

TEST_F(StashStateTest, FlippedBitInEachPieceIsAnErrorThatNamesIt) {
    Bytes random(2'000'000);
    for (std::byte& byte : random) byte = static_cast<std::byte>(generator_());
    StashState state(random, {}, {.name = "layer 7", .pool = &store_});
    Bytes memory(random.size());
    std::size_t number = 0;
    for (Slab& slab : state.slabs()) {
        for (std::size_t i = 0; i < slab.pieces; ++i, ++number) {
            std::byte& damaged =
                slab.memory.as<std::byte>()[slab.bytes * (2 * i + 1) / (2 * slab.pieces)];
            damaged ^= std::byte{4};
            try {
                state.decode_to(memory);
                ADD_FAILURE() << "piece " << number;
            } catch (const StashError& error) {
                EXPECT_EQ(error.tensor(), "layer 7");
                EXPECT_EQ(error.piece(), number);
            }
            damaged ^= std::byte{4};
        }
    }
    EXPECT_EQ(number, 31U);
    state.decode_to(memory);
    EXPECT_TRUE(memory == random);
}

TEST_F(StashStateTest, ErrorStatesWhatWasFoundAndExpected) {
    StashState state(Bytes(100'000, std::byte{3}), {}, {.name = "x", .pool = &store_});
    state.slabs()[0].memory.as<std::byte>()[0] ^= std::byte{1};
    Bytes memory(100'000);
    EXPECT_EQ(message_of([&] { state.decode_to(memory); }),
              "tensorpool: stash 'x': piece 0: found 21 damaged bytes in memory, expected the "
              "encoding of 65536 bytes, from byte 0, with their checksum");
}

}  // namespace
}  // namespace tensorpool::stashing
