#include "plan/pool_requests.hpp"

#include <gtest/gtest.h>

#include "plan/plans.hpp"
#include "plan/served_plan.hpp"

namespace tensorpool::planned {
namespace {

using Answer = Follower::Answer;

/// A plan that is served as by an arena: the follower sees only requests that are not the expected
/// one.
class Following : public ::testing::Test {
protected:
    void serve(LearnedPlan plan) {
        pages::SlowPath path;
        served_ = ServedPlan::make(std::move(plan), testing::pool_of_tests(), {}, path);
        follower_ = std::make_unique<Follower>(tables());
        begin();
    }
    PlanTables& tables() { return served_->tables(); }
    void begin() { next_ = tables().buffers; }
    void end() { follower_->end_iteration(*next_); }
    Answer request(std::uint64_t granules, std::size_t alignment = 64) {
        if (next_->is_for(granules * 64, alignment) && tables().are_predecessors_free(*next_)) {
            tables().hand_out(*next_++);
            return Answer::served;
        }
        const Follower::Turn turn = follower_->find(*next_, granules * 64, alignment);
        EXPECT_EQ(turn.buffer != nullptr, turn.answer == Answer::served);
        if (turn.buffer != nullptr) tables().hand_out(*turn.buffer);
        next_ = turn.next;
        return turn.answer;
    }
    void free(std::uint32_t buffer) { tables().take_back(buffer); }
    std::uint32_t turn() { return tables().number_of(*next_); }

    std::unique_ptr<ServedPlan> served_;
    std::unique_ptr<Follower> follower_;
    const PlannedBuffer* next_ = nullptr;
};

/// Six buffers of one to six granules, side by side.
LearnedPlan row() {
    return testing::plan_of({{0, 1, 6}, {1, 2, 6}, {3, 3, 6}, {6, 4, 6}, {10, 5, 6}, {15, 6, 6}});
}

TEST_F(Following, LargerRequestGoesToThePoolAndLaterOnesAreServed) {
    serve(row());
    EXPECT_EQ(request(1), Answer::served);
    EXPECT_EQ(request(9), Answer::too_large);
    EXPECT_EQ(request(3), Answer::served);
    EXPECT_EQ(request(4), Answer::served);
}

TEST_F(Following, RequestWithLargerAlignmentIsTooLarge) {
    serve(row());
    EXPECT_EQ(request(1, 128), Answer::too_large);
    EXPECT_EQ(request(2), Answer::served);
}

TEST_F(Following, SmallerRequestIsServed) {
    serve(row());
    EXPECT_EQ(request(1), Answer::served);
    EXPECT_EQ(request(1), Answer::served);
    EXPECT_EQ(request(3), Answer::served);
    EXPECT_EQ(turn(), 3);
}

TEST_F(Following, AdditionalRequestCausesNoOtherMiss) {
    serve(row());
    EXPECT_EQ(request(1), Answer::served);
    EXPECT_EQ(request(9), Answer::too_large);
    for (std::uint64_t granules = 2; granules <= 6; ++granules) {
        EXPECT_EQ(request(granules), Answer::served);
    }
}

TEST_F(Following, AdditionalRequestLikeALaterOneCausesNoOtherMiss) {
    serve(row());
    EXPECT_EQ(request(5), Answer::out_of_order);
    for (std::uint64_t granules = 1; granules <= 6; ++granules) {
        EXPECT_EQ(request(granules), Answer::served);
    }
}

TEST_F(Following, JumpsAheadAfterTwoMatchingRequests) {
    serve(row());
    EXPECT_EQ(request(4), Answer::out_of_order);
    EXPECT_EQ(request(5), Answer::served);
    EXPECT_EQ(request(6), Answer::served);
    EXPECT_EQ(turn(), 6);
}

TEST_F(Following, RequestAfterItsTurnGoesToThePool) {
    serve(row());
    EXPECT_EQ(request(4), Answer::out_of_order);
    EXPECT_EQ(request(5), Answer::served);
    EXPECT_EQ(request(2), Answer::out_of_order);
    EXPECT_EQ(request(6), Answer::served);
}

TEST_F(Following, RequestWhoseBufferWasLentGoesToThePool) {
    serve(testing::plan_of({{0, 4, 3}, {4, 6, 3}, {10, 6, 3}}));
    EXPECT_EQ(request(2), Answer::served);
    EXPECT_EQ(request(4), Answer::out_of_order);
    EXPECT_EQ(request(6), Answer::served);
    EXPECT_EQ(request(6), Answer::served);
}

TEST_F(Following, RequestAfterTheEndIsUnknown) {
    serve(testing::plan_of({{0, 1, 1}}));
    EXPECT_EQ(request(1), Answer::served);
    EXPECT_EQ(request(7), Answer::unknown);
    EXPECT_EQ(request(1), Answer::unknown);
    EXPECT_EQ(turn(), 1);
}

TEST_F(Following, LeftToPoolRequestMatchesAnyAlignment) {
    LearnedPlan plan;
    testing::add_left_to_pool(plan, 2);
    testing::add(plan, {0, 1, 2});
    serve(std::move(plan));
    EXPECT_EQ(request(2, 4096), Answer::left_to_pool);
    EXPECT_EQ(request(1), Answer::served);
}

TEST_F(Following, SkipsLeftToPoolRequests) {
    LearnedPlan plan;
    for (int i = 0; i < 100; ++i) testing::add_left_to_pool(plan, 2);
    testing::add(plan, {0, 1, 101});
    serve(std::move(plan));
    EXPECT_EQ(request(1), Answer::served);
}

TEST_F(Following, LateFreeSendsOverlappingRequestsToThePool) {
    serve(testing::small_plan());
    EXPECT_EQ(request(4), Answer::served);
    EXPECT_EQ(request(4), Answer::served);
    free(0);
    EXPECT_EQ(request(8), Answer::still_in_use);
    free(1);
    EXPECT_EQ(request(2), Answer::served);
}

// The predecessor was passed, and its own predecessor is still held. So it is not enough to check
// direct predecessors.
TEST_F(Following, FollowsPredecessorsThroughPassedBuffers) {
    serve(testing::small_plan());
    EXPECT_EQ(request(4), Answer::served);
    EXPECT_EQ(request(4), Answer::served);
    EXPECT_EQ(request(8), Answer::still_in_use);
    EXPECT_EQ(request(2), Answer::still_in_use);
    free(1);
    end();
    begin();
    EXPECT_EQ(request(4), Answer::still_in_use);  // buffer 0 itself, from the iteration before
    EXPECT_EQ(request(4), Answer::served);        // buffer 1: its predecessors 2 and 3 were passed
}

TEST_F(Following, BufferHeldThroughItsTurnsIsServedAfterItsFree) {
    serve(testing::plan_of({{0, 1, 1}, {0, 1, 2}}));
    EXPECT_EQ(request(1), Answer::served);
    for (int iteration = 0; iteration < 3; ++iteration) {
        EXPECT_EQ(request(1), Answer::still_in_use);
        end();
        begin();
        EXPECT_EQ(request(1), Answer::still_in_use);
    }
    free(0);
    EXPECT_EQ(request(1), Answer::served);
}

TEST_F(Following, EndOfIterationPassesRemainingBuffers) {
    serve(testing::small_plan());
    EXPECT_EQ(request(4), Answer::served);
    end();
    EXPECT_EQ(tables().states[0].load(), BufferState::held);
    EXPECT_EQ(tables().states[1].load(), BufferState::passed);
    EXPECT_EQ(tables().states[3].load(), BufferState::passed);
}

}  // namespace
}  // namespace tensorpool::planned
