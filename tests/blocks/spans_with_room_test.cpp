#include "blocks/bucket_shard.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tensorpool::blocks {
namespace {

class SpansWithRoomTest : public ::testing::Test {
protected:
    static constexpr unsigned blocks = 63;

    // Of the span's blocks, `out` are not home.
    pages::Span& place(unsigned number, unsigned out) {
        pages::Span& span = spans_[number];
        span.carved = blocks;
        span.home = static_cast<std::uint16_t>(blocks - out);
        with_room_.place(span);
        return span;
    }

    std::array<pages::Span, 10> spans_;
    SpansWithRoom with_room_{blocks};
};

TEST_F(SpansWithRoomTest, FullestServeFirst) {
    EXPECT_EQ(with_room_.fullest(), nullptr);
    pages::Span& half = place(0, 32);
    pages::Span& fuller = place(1, 60);
    pages::Span& emptier = place(2, 3);
    for (pages::Span* const expected : {&fuller, &half, &emptier}) {
        ASSERT_EQ(with_room_.fullest(), expected);
        with_room_.remove(*expected);
    }
    EXPECT_EQ(with_room_.fullest(), nullptr);
}

TEST_F(SpansWithRoomTest, SpanMovesWhenItsShareChanges) {
    pages::Span& one = place(0, 32);
    pages::Span& other = place(1, 20);
    place(1, 62);
    EXPECT_EQ(with_room_.fullest(), &other);
    place(1, 0);
    EXPECT_EQ(with_room_.fullest(), &one);
    with_room_.remove(one);
    EXPECT_EQ(with_room_.fullest(), &other);
}

TEST_F(SpansWithRoomTest, SpanOfAboutTheSameShareKeepsItsTurn) {
    place(0, 32);
    pages::Span& last = place(1, 33);
    place(0, 34);
    EXPECT_EQ(with_room_.fullest(), &last);
}

TEST_F(SpansWithRoomTest, EachShareHasAList) {
    for (unsigned out = 0; out < blocks; ++out) {
        pages::Span& span = place(0, out);
        EXPECT_EQ(span.fullness, out * SpansWithRoom::list_count / (blocks + 1)) << out;
        EXPECT_EQ(&with_room_.lists()[span.fullness].front(), &span);
        EXPECT_EQ(with_room_.fullest(), &span);
    }
}

TEST_F(SpansWithRoomTest, RemovingASpanThatIsNotListedDoesNothing) {
    pages::Span& span = place(0, 1);
    with_room_.remove(span);
    with_room_.remove(span);
    EXPECT_EQ(with_room_.fullest(), nullptr);
}

}  // namespace
}  // namespace tensorpool::blocks
