#include "rest/stash_state.hpp"

#include <gtest/gtest.h>

#include "rest/test_content.hpp"

namespace tensorpool::stashing {
namespace {

class StashStateTest : public ::testing::Test {
protected:
    MemoryPool store_{PoolOptions{.name = "at rest"}};
    Generator generator_{1};
};

TEST_F(StashStateTest, FlippedBitInEachPieceIsAnErrorThatNamesIt) {
    Bytes random(2'000'000);
    for (std::byte& byte : random) byte = static_cast<std::byte>(generator_());
    StashState state(random, {}, {.name = "layer 7", .pool = &store_});
    Bytes memory(random.size());
    std::size_t number = 0;
    std::size_t before = 0;
    for (const Slab& slab : state.encoded().slabs()) {
        for (; default_piece_bytes * (2 * number + 1) / 2 < before + slab.bytes; ++number) {
            std::byte& damaged = slab.memory[default_piece_bytes * (2 * number + 1) / 2 - before];
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
        before += slab.bytes;
    }
    EXPECT_EQ(number, 31U);
    state.decode_to(memory);
    EXPECT_TRUE(memory == random);
}

TEST_F(StashStateTest, ErrorStatesWhatWasFoundAndExpected) {
    const StashState state(Bytes(100'000, std::byte{3}), {}, {.name = "x", .pool = &store_});
    std::byte* const bytes = state.encoded().slabs()[0].memory;
    Bytes memory(100'000);
    const auto message = [&] { return message_of([&] { state.decode_to(memory); }); };
    const std::string expected = " damaged bytes in memory, expected the encoding of ";
    bytes[sizeof(PieceLength)] ^= std::byte{1};
    EXPECT_EQ(message(), "tensorpool: stash 'x': piece 0: found 21" + expected +
                             "65536 bytes, from byte 0, with their checksum");
    bytes[sizeof(PieceLength)] ^= std::byte{1};
    // A length beyond the end takes what is left: two encodings of 21 bytes and a length.
    bytes[3] ^= std::byte{1};
    EXPECT_EQ(message(), "tensorpool: stash 'x': piece 0: found 46" + expected +
                             "65536 bytes, from byte 0, with their checksum");
    bytes[3] ^= std::byte{1};
    state.decode_to(memory);
    EXPECT_EQ(memory, Bytes(100'000, std::byte{3}));
}

}  // namespace
}  // namespace tensorpool::stashing
