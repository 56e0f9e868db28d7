#include "blocks/depot.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <vector>

#include "blocks/scarce_memory.hpp"

namespace tensorpool::blocks {
namespace {

class MagazineStackTest : public ::testing::Test {
protected:
    Magazine& enter() {
        Magazine& magazine = magazines_.emplace_back();
        EXPECT_TRUE(table_.enter(magazine));
        return magazine;
    }

    pages::RecordArena records_;
    MagazineTable table_{records_};
    MagazineStack stack_{table_};
    std::deque<Magazine> magazines_;
};

TEST_F(MagazineStackTest, PopsTheLastPushedFirst) {
    EXPECT_EQ(stack_.pop(), nullptr);
    Magazine& first = enter();
    Magazine& second = enter();
    stack_.push(first);
    stack_.push(second);
    EXPECT_EQ(stack_.pop(), &second);
    EXPECT_EQ(stack_.pop(), &first);
    EXPECT_EQ(stack_.pop(), nullptr);
}

TEST_F(MagazineStackTest, HasRoomForAllEnteredMagazines) {
    for (unsigned i = 0; i < 1000; ++i) stack_.push(enter());
    for (unsigned i = 1000; i != 0; --i) ASSERT_EQ(stack_.pop(), &magazines_[i - 1]);
    EXPECT_EQ(stack_.pop(), nullptr);
}

TEST_F(MagazineStackTest, NumbersBeginAtOneAndAreUnique) {
    std::set<std::uint32_t> numbers;
    for (unsigned i = 0; i < 100; ++i) numbers.insert(enter().number);
    EXPECT_EQ(numbers.size(), 100U);
    EXPECT_EQ(*numbers.begin(), 1U);
    EXPECT_EQ(*numbers.rbegin(), 100U);
}

TEST_F(MagazineStackTest, NumberIsReusedAfterLeave) {
    for (unsigned i = 0; i < 10; ++i) enter();
    const std::size_t held = records_.bytes_held();
    for (unsigned i = 0; i < 100'000; ++i) {
        const std::uint32_t number = magazines_[3].number;
        table_.leave(magazines_[3]);
        Magazine another;
        ASSERT_TRUE(table_.enter(another));
        ASSERT_EQ(another.number, number);
        stack_.push(another);
        ASSERT_EQ(stack_.pop(), &another);
        table_.leave(another);
        ASSERT_TRUE(table_.enter(magazines_[3]));
    }
    EXPECT_EQ(records_.bytes_held(), held);
}

TEST_F(MagazineStackTest, EnterFailsWithoutMemoryForTheEntry) {
    enter();
    {
        const testing::ScarceMemory scarce;
        while (records_.allocate(8, 8) != nullptr) {
        }
        Magazine one_more;
        EXPECT_FALSE(table_.enter(one_more));
    }
    stack_.push(magazines_[0]);
    stack_.push(enter());
    EXPECT_EQ(stack_.pop(), &magazines_[1]);
    EXPECT_EQ(stack_.pop(), &magazines_[0]);
}

}  // namespace
}  // namespace tensorpool::blocks
