#include "plan/pool_requests.hpp"

#include <gtest/gtest.h>

namespace tensorpool::planned {
namespace {

TEST(Learner, RecordsSizesInGranulesAndTimesOfFrees) {
    Learner learner(1);
    learner.begin_iteration();
    const auto first = learner.note(100, 1, 128);
    const auto second = learner.note(64, 256, 64);
    learner.note_end(first);
    learner.note(1, 64, 64);
    learner.note_end(second);
    ASSERT_TRUE(learner.end_iteration());
    const std::vector<Request> expected = {
        {.bytes = 128, .pool_bytes = 128, .alignment = 64, .end = 2},
        {.bytes = 64, .pool_bytes = 64, .alignment = 256, .end = 3},
        {.bytes = 64, .pool_bytes = 64, .alignment = 64, .end = Request::outlives}};
    EXPECT_EQ(learner.learned(), expected);
}

TEST(Learner, NeedsConsecutiveIdenticalIterations) {
    Learner learner(2);
    const auto iterate = [&](std::size_t bytes) {
        learner.begin_iteration();
        learner.note_end(learner.note(bytes, 64, bytes));
        return learner.end_iteration();
    };
    EXPECT_FALSE(iterate(64));
    EXPECT_FALSE(iterate(128));
    EXPECT_TRUE(iterate(128));
}

TEST(Learner, KeepsTheLongestLifetime) {
    Learner learner(2);
    for (int iteration = 0; iteration < 2; ++iteration) {
        learner.begin_iteration();
        const auto first = learner.note(64, 64, 64);
        const auto second = learner.note(64, 64, 64);
        if (iteration == 0) learner.note_end(first);
        learner.note(64, 64, 64);
        if (iteration == 1) learner.note_end(first);
        if (iteration == 1) learner.note_end(second);
        EXPECT_EQ(learner.end_iteration(), iteration == 1);
    }
    EXPECT_EQ(learner.learned()[0].end, 3);
    EXPECT_FALSE(learner.learned()[1].is_planned());
}

TEST(Learner, IgnoresFreesAfterTheIteration) {
    Learner learner(2);
    learner.begin_iteration();
    const auto late = learner.note(64, 64, 64);
    EXPECT_FALSE(learner.end_iteration());
    learner.note_end(late);
    learner.begin_iteration();
    learner.note(64, 64, 64);
    learner.note_end(late);
    EXPECT_TRUE(learner.end_iteration());
    EXPECT_FALSE(learner.learned()[0].is_planned());
}

TEST(Learner, LeavesOversizedRequestsToThePool) {
    Learner learner(1);
    learner.begin_iteration();
    learner.note_end(learner.note(max_request_bytes + 1, 64, 0));
    learner.note_end(learner.note(64, 2 * max_request_alignment, 0));
    learner.note_end(learner.note(SIZE_MAX, 64, 0));
    EXPECT_TRUE(learner.end_iteration());
    for (const Request& request : learner.learned()) EXPECT_FALSE(request.is_planned());
}

TEST(Learner, DiscardsIterationsOfTooManyRequests) {
    Learner learner(1, 3);
    const auto learns = [&](std::uint32_t requests) {
        learner.begin_iteration();
        for (std::uint32_t i = 0; i < requests; ++i) {
            const Learner::Ticket ticket = learner.note(64, 64, 64);
            if (i <= 3) {
                EXPECT_EQ(ticket.request, i);
            } else {
                EXPECT_EQ(ticket.iteration, 0);
            }
        }
        return learner.end_iteration();
    };
    EXPECT_FALSE(learns(4));
    EXPECT_FALSE(learns(1000));
    EXPECT_TRUE(learner.learned().empty());
    EXPECT_TRUE(learns(3));
}

TEST(Learner, IgnoresIterationsWithoutRequests) {
    Learner learner(1);
    learner.begin_iteration();
    EXPECT_FALSE(learner.end_iteration());
}

TEST(Learner, ForgetDiscardsTheCurrentIteration) {
    Learner learner(1);
    learner.begin_iteration();
    const auto ticket = learner.note(64, 64, 64);
    learner.forget();
    EXPECT_FALSE(learner.is_noting());
    learner.note_end(ticket);
    EXPECT_TRUE(learner.learned().empty());
}

}  // namespace
}  // namespace tensorpool::planned
