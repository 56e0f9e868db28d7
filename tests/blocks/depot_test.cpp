#include "blocks/depot.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <set>
#include <vector>

#include "blocks/scarce_memory.hpp"
#include "models/exclusive_ownership.hpp"
#include "pages/record_arena.hpp"

namespace tensorpool::blocks {
namespace {

using testing::OwnershipFindings;
using testing::OwnershipModel;

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

class DepotTest : public ::testing::Test {
protected:
    DepotTest() {
        for (Magazine& magazine : magazines_) EXPECT_TRUE(depot_.enter(magazine));
    }

    pages::RecordArena records_;
    Depot depot_{records_};
    std::vector<Magazine> magazines_{8};
};

TEST_F(DepotTest, IsEmptyInitially) {
    EXPECT_EQ(depot_.take_full(), nullptr);
    EXPECT_EQ(depot_.take_empty(), nullptr);
}

TEST_F(DepotTest, KeepsFullAndEmptyMagazinesApart) {
    depot_.give_full(magazines_[0]);
    depot_.give_empty(magazines_[1]);
    EXPECT_EQ(depot_.take_empty(), &magazines_[1]);
    EXPECT_EQ(depot_.take_empty(), nullptr);
    EXPECT_EQ(depot_.take_full(), &magazines_[0]);
    EXPECT_EQ(depot_.take_full(), nullptr);
}

TEST_F(DepotTest, ReturnsEveryMagazineOnce) {
    for (Magazine& magazine : magazines_) depot_.give_full(magazine);
    std::set<Magazine*> taken;
    while (Magazine* const magazine = depot_.take_full()) {
        EXPECT_TRUE(taken.insert(magazine).second);
    }
    EXPECT_EQ(taken.size(), magazines_.size());
}

TEST_F(DepotTest, HasRoomForAllMagazinesInEitherList) {
    for (unsigned round = 0; round < 3; ++round) {
        for (Magazine& magazine : magazines_) depot_.give_full(magazine);
        for (unsigned i = 0; i < magazines_.size(); ++i) depot_.give_empty(*depot_.take_full());
        for (unsigned i = 0; i < magazines_.size(); ++i) ASSERT_NE(depot_.take_empty(), nullptr);
    }
}

TEST_F(DepotTest, TakesNoMoreRecordsOnceThereIsRoom) {
    const std::size_t held = records_.bytes_held();
    for (unsigned round = 0; round < 100'000; ++round) {
        depot_.give_full(magazines_[round % 8]);
        depot_.give_empty(*depot_.take_full());
        ASSERT_NE(depot_.take_empty(), nullptr);
    }
    EXPECT_EQ(records_.bytes_held(), held);
}

using DepotDeathTest = DepotTest;

TEST_F(DepotDeathTest, MagazineWithoutRoomStopsTheProgram) {
    for (Magazine& magazine : magazines_) depot_.give_empty(magazine);
    Magazine one_more;
    EXPECT_DEATH(depot_.give_empty(one_more), "tensorpool: depot: no room");
}

// Exclusive ownership ----------------------------------------------------------------------------
// The thread sanitizer suppresses reports about Boost.Lockfree, so this test replaces it.

constexpr unsigned magazine_count = 24;
constexpr unsigned steps = 100'000;

using DepotOwnership = DepotTest;

TEST_F(DepotOwnership, EveryMagazineHasOneHolderAndNoneIsLost) {
    OwnershipModel<Depot> model(depot_, magazine_count);
    EXPECT_EQ(model.run(4, steps), OwnershipFindings{});
}

TEST_F(DepotOwnership, OneMagazineHasOneHolderUnderContention) {
    OwnershipModel<Depot> model(depot_, 1);
    EXPECT_EQ(model.run(4, steps), OwnershipFindings{});
}

/// A depot that makes an error in every thousandth call.
class FaultyDepot {
public:
    enum class Fault { none, gives_again, loses, stranger, keeps_twice };
    FaultyDepot(Depot& depot, Fault fault) : depot_(depot), fault_(fault) {}

    bool enter(Magazine& magazine) { return depot_.enter(magazine); }
    Magazine* take_full() { return take(depot_.take_full()); }
    Magazine* take_empty() { return take(depot_.take_empty()); }
    void give_full(Magazine& magazine) {
        depot_.give_full(magazine);
        if (fault_ == Fault::keeps_twice && is_time()) depot_.give_full(magazine);
    }
    void give_empty(Magazine& magazine) { depot_.give_empty(magazine); }

private:
    bool is_time() { return ++calls_ % 1000 == 0; }

    Magazine* take(Magazine* magazine) {
        if (fault_ == Fault::gives_again) {
            Magazine* const before = last_.exchange(magazine);
            if (before != nullptr && magazine != nullptr && is_time()) {
                depot_.give_full(*magazine);
                return before;
            }
        }
        if (fault_ == Fault::loses && is_time()) return nullptr;
        if (fault_ == Fault::stranger && is_time()) {
            if (magazine != nullptr) depot_.give_full(*magazine);
            return &stranger_;
        }
        return magazine;
    }

    Depot& depot_;
    const Fault fault_;
    std::atomic<unsigned> calls_ = 0;
    std::atomic<Magazine*> last_ = nullptr;
    Magazine stranger_;
};

class DepotOwnershipModel : public DepotOwnership {
protected:
    OwnershipFindings findings_with(FaultyDepot::Fault fault, unsigned threads) {
        FaultyDepot faulty(depot_, fault);
        OwnershipModel<FaultyDepot> model(faulty, magazine_count, std::memory_order_seq_cst);
        return model.run(threads, steps / 10);
    }
};

TEST_F(DepotOwnershipModel, ReportsNothingForACorrectDepot) {
    EXPECT_EQ(findings_with(FaultyDepot::Fault::none, 4), OwnershipFindings{});
}

TEST_F(DepotOwnershipModel, DetectsAMagazineReturnedTwiceToOneThread) {
    EXPECT_GT(findings_with(FaultyDepot::Fault::gives_again, 1).held_by_two, 0U);
}

TEST_F(DepotOwnershipModel, DetectsAMagazineReturnedToTwoThreads) {
    EXPECT_GT(findings_with(FaultyDepot::Fault::gives_again, 4).held_by_two, 0U);
}

TEST_F(DepotOwnershipModel, DetectsAMagazineThatLiesInTheDepotTwice) {
    const OwnershipFindings found = findings_with(FaultyDepot::Fault::keeps_twice, 1);
    EXPECT_GT(found.held_by_two + found.there_twice, 0U);
}

TEST_F(DepotOwnershipModel, DetectsALostMagazine) {
    EXPECT_GT(findings_with(FaultyDepot::Fault::loses, 1).lost, 0U);
}

TEST_F(DepotOwnershipModel, DetectsAnUnknownMagazine) {
    EXPECT_GT(findings_with(FaultyDepot::Fault::stranger, 1).strangers, 0U);
}

}  // namespace
}  // namespace tensorpool::blocks
