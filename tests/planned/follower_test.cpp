#include "planned/follower.hpp"

#include <gtest/gtest.h>

#include "planned/plans.hpp"
#include "planned/served_plan.hpp"

namespace tensorpool::planned {
namespace {

using Answer = Follower::Answer;

/// A plan whose requests are answered as an arena does: a request in its turn goes past the
/// follower.
class Following : public ::testing::Test {
protected:
    void serve(LearnedPlan plan) {
        base::Refusal refusal;
        served_ = ServedPlan::make(std::move(plan), refusal);
        follower_ = std::make_unique<Follower>(tables());
        begin();
    }
    PlanTables& tables() { return served_->tables(); }
    void begin() { next_ = tables().slots; }
    void end() { follower_->end_iteration(*next_); }
    Answer ask(std::uint64_t granules, std::size_t alignment = 64) {
        if (next_->is_for(granules * 64, alignment) && tables().are_before_free(*next_)) {
            tables().hand_out(*next_++);
            return Answer::served;
        }
        const Follower::Turn turn = follower_->find(*next_, granules * 64, alignment);
        EXPECT_EQ(turn.slot != nullptr, turn.answer == Answer::served);
        if (turn.slot != nullptr) tables().hand_out(*turn.slot);
        next_ = turn.next;
        return turn.answer;
    }
    void free(std::uint32_t slot) { tables().take_back(slot); }
    std::uint32_t turn() { return tables().number_of(*next_); }

    std::unique_ptr<ServedPlan> served_;
    std::unique_ptr<Follower> follower_;
    const PlannedBuffer* next_ = nullptr;
};

/// Six buffers of one to six granules, side by side.
LearnedPlan row() {
    return testing::plan_of({{0, 1, 6}, {1, 2, 6}, {3, 3, 6}, {6, 4, 6}, {10, 5, 6}, {15, 6, 6}});
}

TEST_F(Following, AGrownRequestGoesToThePoolAndTheNextOnesAreServed) {
    serve(row());
    EXPECT_EQ(ask(1), Answer::served);
    EXPECT_EQ(ask(9), Answer::too_large);
    EXPECT_EQ(ask(3), Answer::served);
    EXPECT_EQ(ask(4), Answer::served);
}

TEST_F(Following, ARequestOfMoreAlignmentIsTooLarge) {
    serve(row());
    EXPECT_EQ(ask(1, 128), Answer::too_large);
    EXPECT_EQ(ask(2), Answer::served);
}

TEST_F(Following, ASmallerRequestGetsItsSlot) {
    serve(row());
    EXPECT_EQ(ask(1), Answer::served);
    EXPECT_EQ(ask(1), Answer::served);
    EXPECT_EQ(ask(3), Answer::served);
    EXPECT_EQ(turn(), 3);
}

TEST_F(Following, AnAdditionalRequestCostsNoOther) {
    serve(row());
    EXPECT_EQ(ask(1), Answer::served);
    EXPECT_EQ(ask(9), Answer::too_large);
    for (std::uint64_t granules = 2; granules <= 6; ++granules) {
        EXPECT_EQ(ask(granules), Answer::served);
    }
}

TEST_F(Following, AnAdditionalRequestThatLooksLikeALaterOneCostsNoOther) {
    serve(row());
    EXPECT_EQ(ask(5), Answer::out_of_order);
    for (std::uint64_t granules = 1; granules <= 6; ++granules) {
        EXPECT_EQ(ask(granules), Answer::served);
    }
}

TEST_F(Following, RequestsThatAreLeftOutAreSteppedOverWhenTwoSpeakForIt) {
    serve(row());
    EXPECT_EQ(ask(4), Answer::out_of_order);
    EXPECT_EQ(ask(5), Answer::served);
    EXPECT_EQ(ask(6), Answer::served);
    EXPECT_EQ(turn(), 6);
}

TEST_F(Following, ARequestWhoseTurnWentByGoesToThePool) {
    serve(row());
    EXPECT_EQ(ask(4), Answer::out_of_order);
    EXPECT_EQ(ask(5), Answer::served);
    EXPECT_EQ(ask(2), Answer::out_of_order);
    EXPECT_EQ(ask(6), Answer::served);
}

TEST_F(Following, ARequestWhoseSlotASmallerOneGotGoesToThePool) {
    serve(testing::plan_of({{0, 4, 3}, {4, 6, 3}, {10, 6, 3}}));
    EXPECT_EQ(ask(2), Answer::served);
    EXPECT_EQ(ask(4), Answer::out_of_order);
    EXPECT_EQ(ask(6), Answer::served);
    EXPECT_EQ(ask(6), Answer::served);
}

TEST_F(Following, WhatComesAfterTheLastIsUnknown) {
    serve(testing::plan_of({{0, 1, 1}}));
    EXPECT_EQ(ask(1), Answer::served);
    EXPECT_EQ(ask(7), Answer::unknown);
    EXPECT_EQ(ask(1), Answer::unknown);
    EXPECT_EQ(turn(), 1);
}

TEST_F(Following, WhatThePlanLeavesToThePoolGoesThereWhateverItsAlignment) {
    LearnedPlan plan;
    testing::add_left_to_pool(plan, 2);
    testing::add(plan, {0, 1, 2});
    serve(std::move(plan));
    EXPECT_EQ(ask(2, 4096), Answer::left_to_pool);
    EXPECT_EQ(ask(1), Answer::served);
}

TEST_F(Following, WhatThePlanLeavesToThePoolMayBeWantedOnlyOnce) {
    LearnedPlan plan;
    for (int i = 0; i < 100; ++i) testing::add_left_to_pool(plan, 2);
    testing::add(plan, {0, 1, 101});
    serve(std::move(plan));
    EXPECT_EQ(ask(1), Answer::served);
}

TEST_F(Following, ALateFreeKeepsWhatSharesItsBytesWithThePool) {
    serve(testing::small_plan());
    EXPECT_EQ(ask(4), Answer::served);
    EXPECT_EQ(ask(4), Answer::served);
    free(0);
    EXPECT_EQ(ask(8), Answer::still_in_use);
    free(1);
    EXPECT_EQ(ask(2), Answer::served);
}

// The slot before was passed, and its predecessor is still held: to look one slot back is not
// enough.
TEST_F(Following, LooksThroughTurnsThatWentBy) {
    serve(testing::small_plan());
    EXPECT_EQ(ask(4), Answer::served);
    EXPECT_EQ(ask(4), Answer::served);
    EXPECT_EQ(ask(8), Answer::still_in_use);
    EXPECT_EQ(ask(2), Answer::still_in_use);
    free(1);
    end();
    begin();
    EXPECT_EQ(ask(4), Answer::still_in_use);  // slot 0 itself, from before
    EXPECT_EQ(ask(4), Answer::served);        // slot 1: before it are 2 and 3, passed
}

TEST_F(Following, ASlotHeldThroughItsTurnsIsFreeOnceItIsFreed) {
    serve(testing::plan_of({{0, 1, 1}, {0, 1, 2}}));
    EXPECT_EQ(ask(1), Answer::served);
    for (int iteration = 0; iteration < 3; ++iteration) {
        EXPECT_EQ(ask(1), Answer::still_in_use);
        end();
        begin();
        EXPECT_EQ(ask(1), Answer::still_in_use);
    }
    free(0);
    EXPECT_EQ(ask(1), Answer::served);
}

TEST_F(Following, TurnsThatAreLeftWhenAnIterationEndsWentBy) {
    serve(testing::small_plan());
    EXPECT_EQ(ask(4), Answer::served);
    end();
    EXPECT_EQ(tables().states[0].load(), BufferState::held);
    EXPECT_EQ(tables().states[1].load(), BufferState::passed);
    EXPECT_EQ(tables().states[3].load(), BufferState::passed);
}

}  // namespace
}  // namespace tensorpool::planned
