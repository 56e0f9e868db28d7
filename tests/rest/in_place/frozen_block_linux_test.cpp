// One frozen block, with its faults served by the test itself instead of a handler.

#include "rest/in_place/frozen_block.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "limits/commit_budget.hpp"
#include "platform/platform.hpp"
#include "rest/in_place/frozen_blocks.hpp"

namespace tensorpool::stashing {
namespace {

using testing::piece_bytes;

class FrozenBlockTest : public ::testing::Test {
protected:
    static constexpr std::uint32_t pieces = 8;
    static constexpr std::size_t bytes = pieces * piece_bytes;

    void SetUp() override {
        source_ = platform::open_fault_source();
        if (source_.scope == platform::FaultScope::none) {
            GTEST_SKIP() << "userfaultfd(2) is not allowed here";
        }
        ASSERT_TRUE(tools_.set_up());
        memory_ = static_cast<std::byte*>(platform::map(bytes, platform::page_bytes()));
        for (std::size_t i = 0; i != bytes; ++i) memory_[i] = std::byte(i * i / 13);
        content_.assign(memory_, memory_ + bytes);
        ASSERT_TRUE(platform::watch_faults(source_, memory_, bytes));
        block_ = FrozenBlock::make({.block = memory_,
                                    .range = {memory_, bytes},
                                    .type = {},
                                    .window_bytes = 4 * piece_bytes,
                                    .name = "a name that is longer than a record has room for it"});
        ASSERT_NE(block_, nullptr);
    }
    void TearDown() override {
        if (block_ != nullptr) FrozenBlock::destroy(*block_);
        if (source_.file >= 0) platform::close_fault_source(source_);
        if (memory_ != nullptr) platform::unmap(memory_, bytes);
    }

    void put_all_to_rest() {
        for (std::uint32_t piece = 0; piece != pieces; ++piece) {
            ASSERT_EQ(block_->put_to_rest(piece, source_, tools_), Done::yes);
        }
    }
    // As the handler does.
    Done serve(std::uint32_t piece, bool is_write) {
        const Done done = block_->serve(piece, is_write, source_, tools_);
        EXPECT_LE(block_->resident_bytes(), is_whole_ ? bytes : 4 * piece_bytes);
        block_->make_room(source_, tools_);
        return done;
    }
    bool is_right(std::uint32_t piece) const {
        const std::size_t at = piece * piece_bytes;
        return std::equal(memory_ + at, memory_ + at + piece_bytes,
                          content_.begin() + static_cast<std::ptrdiff_t>(at));
    }

    platform::FaultSource source_;
    PieceTools tools_;
    std::byte* memory_ = nullptr;
    std::vector<std::byte> content_;
    FrozenBlock* block_ = nullptr;
    bool is_whole_ = false;
};

TEST_F(FrozenBlockTest, BeginsResident) {
    EXPECT_EQ(block_->piece_count(), pieces);
    EXPECT_EQ(block_->resident_bytes(), bytes);
    EXPECT_EQ(block_->bytes_at_rest(), 0U);
    EXPECT_EQ(std::strlen(block_->name()), 47U);
    EXPECT_EQ(block_->piece_of(memory_ + 3 * piece_bytes + 5), 3U);
}

TEST_F(FrozenBlockTest, ServedPieceIsRightAndTheWindowHolds) {
    put_all_to_rest();
    EXPECT_EQ(block_->resident_bytes(), 0U);
    for (std::uint32_t i = 0; i != 3 * pieces; ++i) {
        const std::uint32_t piece = i * 5 % pieces;
        ASSERT_EQ(serve(piece, i % 2 == 0), Done::yes);
        EXPECT_TRUE(is_right(piece)) << piece;
    }
}

TEST_F(FrozenBlockTest, PieceThatWasOnlyReadIsNotEncodedAgain) {
    put_all_to_rest();
    for (std::uint32_t piece = 0; piece != pieces; ++piece) {
        ASSERT_EQ(serve(piece, false), Done::yes);
    }
    EXPECT_EQ(block_->encoded_again(), 0U);
    for (std::uint32_t piece = 0; piece != pieces; ++piece) {
        ASSERT_EQ(serve(piece, true), Done::yes);
    }
    EXPECT_EQ(block_->encoded_again(), pieces - 3);
}

TEST_F(FrozenBlockTest, ShorterEncodingGivesPagesBack) {
    put_all_to_rest();
    const std::size_t before = block_->bytes_at_rest();
    ASSERT_EQ(serve(0, true), Done::yes);
    std::memset(memory_, 0, piece_bytes);
    ASSERT_EQ(block_->put_to_rest(0, source_, tools_), Done::yes);
    EXPECT_LT(block_->bytes_at_rest(), before);
    EXPECT_LE(block_->encoding(0).size(), 64U);
}

TEST_F(FrozenBlockTest, DamagedPieceStaysMissing) {
    put_all_to_rest();
    for (std::uint32_t piece = 0; piece != pieces; ++piece) {
        block_->encoding(piece)[piece] ^= std::byte{16};
        EXPECT_EQ(serve(piece, false), Done::damaged);
        EXPECT_EQ(block_->bring_back(piece, source_, tools_), Done::damaged);
    }
    EXPECT_EQ(block_->resident_bytes(), 0U);
}

TEST_F(FrozenBlockTest, PiecesThatCameBackForGoodStay) {
    put_all_to_rest();
    block_->begin_thaw();
    is_whole_ = true;
    for (std::uint32_t piece = 0; piece != pieces; ++piece) {
        ASSERT_EQ(piece % 2 == 0 ? serve(piece, false) : block_->bring_back(piece, source_, tools_),
                  Done::yes);
    }
    EXPECT_EQ(block_->resident_bytes(), bytes);
}

TEST_F(FrozenBlockTest, ResidentPiecesOfARangeThatIsWatchedAnewFillTheWindow) {
    put_all_to_rest();
    block_->begin_thaw();
    is_whole_ = true;
    for (std::uint32_t piece = 0; piece != pieces - 1; ++piece) {
        ASSERT_EQ(serve(piece, false), Done::yes);
    }
    platform::unwatch_faults(source_, memory_, bytes);
    ASSERT_TRUE(platform::watch_faults(source_, memory_, bytes));
    block_->begin_anew();
    is_whole_ = false;
    memory_[0] = content_[0] = std::byte{200};
    ASSERT_EQ(serve(pieces - 1, false), Done::yes);
    EXPECT_LE(block_->resident_bytes(), 4 * piece_bytes);
    ASSERT_EQ(serve(0, false), Done::yes);
    EXPECT_TRUE(is_right(0));
}

TEST_F(FrozenBlockTest, CommitBudgetDoesNotCountWhatTheWindowLeavesFree) {
    const limits::CommitBudget& budget = limits::commit_budget();
    put_all_to_rest();
    EXPECT_EQ(budget.kept_out(), 0U) << "it is being frozen";
    block_->end_use();
    EXPECT_EQ(budget.kept_out(), bytes - 4 * piece_bytes);
    block_->begin_thaw();
    EXPECT_EQ(budget.kept_out(), 0U);
    block_->begin_anew();
    EXPECT_EQ(budget.kept_out(), bytes - 4 * piece_bytes);
    FrozenBlock::destroy(*std::exchange(block_, nullptr));
    EXPECT_EQ(budget.kept_out(), 0U);
}

}  // namespace
}  // namespace tensorpool::stashing
