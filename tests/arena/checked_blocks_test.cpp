#include "arena/checked_blocks.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tensorpool::arena {
namespace {

using Memory = CheckedBlocks::Memory;

class CheckedBlocksTest : public ::testing::Test {
protected:
    CheckedBlocks::Block block(std::size_t position, std::size_t requested = 50) {
        return {memory_.data() + position, requested, 64};
    }
    void begin(std::size_t position) { blocks_.begin(position, block(position)); }

    std::vector<char> memory_ = std::vector<char>(4096);
    CheckedBlocks blocks_{"arena", "mine", Memory::of_system};
};
using CheckedBlocksDeathTest = CheckedBlocksTest;

TEST_F(CheckedBlocksTest, BlocksThatAreUsedAsAllowedAreNotReported) {
    for (int round = 0; round != 3; ++round) {
        for (std::size_t at = 0; at != memory_.size(); at += 64) {
            begin(at);
            std::memset(memory_.data() + at, 7, 50);
        }
        blocks_.end(64);
        blocks_.end(64);  // has ended
        blocks_.check();
        blocks_.end_from(2048);
        blocks_.end_from(0);
        EXPECT_EQ(memory_, std::vector<char>(4096));
    }
}

TEST_F(CheckedBlocksTest, MemoryOfTheCallerNeedNotBeZero) {
    std::memset(memory_.data(), 7, memory_.size());
    CheckedBlocks blocks("arena", "mine", Memory::of_caller);
    blocks.begin(0, block(0));
    blocks.end(0);
    memory_[10] = 7;
    blocks.begin(0, block(0));
    blocks.end_from(0);
}

TEST_F(CheckedBlocksDeathTest, EachByteBehindTheRequestIsCheckedAtTheEnd) {
    begin(0);
    begin(64);
    for (const std::size_t at : {50, 57, 63}) {
        const char before = std::exchange(memory_[64 + at], char(0));
        const std::string report =
            "overrun ptr=.* size=64 requested=50 pool=mine .*\n.*arena "
            "'mine': release: block .* of 50 B was written at offset " +
            std::to_string(at) + ", ";
        EXPECT_EXIT(blocks_.end(64), ::testing::KilledBySignal(SIGABRT), report);
        EXPECT_EXIT(blocks_.end_from(0), ::testing::KilledBySignal(SIGABRT), report);
        EXPECT_EXIT(blocks_.check(), ::testing::KilledBySignal(SIGABRT), report);
        memory_[64 + at] = before;
    }
    blocks_.end_from(0);
}

TEST_F(CheckedBlocksDeathTest, EachByteOfReleasedMemoryIsCheckedAtItsNextUse) {
    begin(0);
    begin(64);
    blocks_.end_from(64);
    for (const std::size_t at : {0, 49, 63}) {
        memory_[64 + at] = 1;
        EXPECT_EXIT(begin(64), ::testing::KilledBySignal(SIGABRT),
                    "write-after-free ptr=.*\n.*arena 'mine': allocate: .*, in released memory");
        memory_[64 + at] = 0;
    }
    begin(64);
}

}  // namespace
}  // namespace tensorpool::arena
