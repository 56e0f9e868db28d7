#include "plan/served_plan.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "base/alignment.hpp"
#include "limits/commit_budget.hpp"
#include "plan/plans.hpp"
#include "platform/platform.hpp"

namespace tensorpool::planned {
namespace {

std::unique_ptr<ServedPlan> serve(LearnedPlan plan) {
    pages::SlowPath path;
    auto served = ServedPlan::make(std::move(plan), testing::pool_of_tests(), {}, path);
    EXPECT_NE(served, nullptr) << path.refusal.limit;
    return served;
}

TEST(ServedPlan, BuffersHaveThePlannedAddresses) {
    const auto served = serve(testing::small_plan());
    const PlanTables& tables = served->tables();
    EXPECT_EQ(tables.count, 5);
    EXPECT_EQ(tables.buffers[1].address, tables.base + 256);
    EXPECT_EQ(tables.buffers[1].bytes, 256);
    EXPECT_EQ(tables.buffers[1].max_alignment, 64);
    EXPECT_TRUE(tables.buffers[1].is_for(256, 64));
    EXPECT_TRUE(tables.buffers[1].is_for(193, 1));
    EXPECT_FALSE(tables.buffers[1].is_for(192, 64));
    EXPECT_FALSE(tables.buffers[1].is_for(257, 64));
    EXPECT_FALSE(tables.buffers[1].is_for(256, 128));
    EXPECT_FALSE(tables.buffers[1].is_for(256, 0));
}

TEST(ServedPlan, LeftToPoolAndSentinelMatchNoRequest) {
    const auto served = serve(testing::small_plan());
    const PlanTables& tables = served->tables();
    EXPECT_EQ(tables.buffers[4].address, nullptr);
    EXPECT_FALSE(tables.buffers[4].is_for(192, 64));
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, SIZE_MAX}) {
        EXPECT_FALSE(tables.buffers[5].is_for(bytes, 1));
    }
}

TEST(ServedPlan, BorrowsWholePagesFromThePool) {
    MemoryPool pool;
    pool.deallocate(pool.allocate(1 << 20));
    std::size_t borrowed = 0;
    {
        pages::SlowPath path;
        const auto served =
            ServedPlan::make(testing::small_plan(), detail::PoolAccess::of(pool), {}, path);
        std::memset(served->tables().base, 1, served->capacity());
        borrowed = served->capacity();
        EXPECT_EQ(borrowed % platform::page_bytes(), 0);
        EXPECT_EQ(pool.get_total_capacity(), 0U) << "the rest was given back";
        EXPECT_FALSE(pool.owns(served->tables().base)) << "no buffer is held";
    }
    EXPECT_EQ(pool.get_total_capacity(), borrowed);
}

TEST(ServedPlan, ReturnsTheMemoryAndBorrowsItAgain) {
    const auto served = serve(testing::small_plan());
    served->return_memory();
    EXPECT_FALSE(served->has_memory());
    EXPECT_EQ(served->capacity(), 0);
    void* const other = testing::public_pool_of_tests().allocate(1 << 20);
    pages::SlowPath path;
    ASSERT_TRUE(served->borrow_memory(path));
    const PlanTables& tables = served->tables();
    EXPECT_EQ(tables.buffers[1].address, tables.base + 256);
    std::memset(tables.base, 1, served->capacity());
    testing::public_pool_of_tests().deallocate(other);
}

TEST(ServedPlan, TablesAreFoundAtAddressesOfItsMemoryOnly) {
    const auto served = serve(testing::small_plan());
    const std::byte* const base = served->tables().base;
    EXPECT_EQ(detail::plan_tables_at(base), &served->tables());
    EXPECT_EQ(detail::plan_tables_at(base + served->capacity() - 1), &served->tables());
    EXPECT_NE(detail::plan_tables_at(base - 1), &served->tables());
    EXPECT_NE(detail::plan_tables_at(base + served->capacity()), &served->tables());
    EXPECT_EQ(detail::plan_tables_at(nullptr), nullptr);
    served->return_memory();
    EXPECT_EQ(detail::plan_tables_at(base), nullptr);
}

TEST(ServedPlan, AlignsItsMemoryToTheLargestAlignment) {
    LearnedPlan plan = testing::plan_of({{0, 1, 1}});
    plan.requests[0].alignment = 1 << 23;
    const auto served = serve(std::move(plan));
    EXPECT_TRUE(base::is_aligned(served->tables().base, 1 << 23));
}

TEST(ServedPlan, FindsTheHeldBufferAtAnAddress) {
    const auto served = serve(testing::small_plan());
    PlanTables& tables = served->tables();
    std::byte* const base = tables.base;
    EXPECT_EQ(tables.held_at(base), PlanTables::no_buffer);
    tables.hand_out(tables.buffers[0]);
    EXPECT_EQ(tables.held_at(base), 0);
    EXPECT_EQ(tables.held_at(base + 1), PlanTables::no_buffer);
    EXPECT_EQ(tables.held_at(base + 64), PlanTables::no_buffer);
    EXPECT_EQ(tables.held_at(base + 256), PlanTables::no_buffer);
    tables.take_back(0);
    EXPECT_EQ(tables.held_at(base), PlanTables::no_buffer);
    tables.hand_out(tables.buffers[2]);
    EXPECT_EQ(tables.held_at(base), 2);
}

TEST(ServedPlan, ChecksThePredecessors) {
    const auto served = serve(testing::small_plan());
    PlanTables& tables = served->tables();
    tables.hand_out(tables.buffers[1]);
    EXPECT_TRUE(tables.are_predecessors_free(tables.buffers[0]));
    EXPECT_FALSE(tables.are_predecessors_free(tables.buffers[2]));
    tables.take_back(1);
    EXPECT_TRUE(tables.are_predecessors_free(tables.buffers[2]));
}

TEST(ServedPlan, IsHeldUntilTheLastBlockIsFreed) {
    const auto served = serve(testing::small_plan());
    PlanTables& tables = served->tables();
    tables.hand_out(tables.buffers[0]);
    tables.hand_out(tables.buffers[3]);
    EXPECT_TRUE(served->is_held());
    tables.take_back(0);
    EXPECT_TRUE(served->is_held());
    tables.take_back(3);
    EXPECT_FALSE(served->is_held());
}

TEST(ServedPlan, WithoutPlannedRequestsHoldsNothing) {
    LearnedPlan plan;
    testing::add_left_to_pool(plan, 1);
    const auto served = serve(std::move(plan));
    EXPECT_FALSE(served->is_held());
    EXPECT_EQ(served->tables().base, nullptr);
    EXPECT_TRUE(served->has_memory());
}

TEST(ServedPlan, ReportsTheLimitThatWasReached) {
    LearnedPlan plan = testing::plan_of({{0, PlanTables::max_bytes / 64, 1}});
    if (limits::commit_budget().ceiling() >= plan.peak_bytes) GTEST_SKIP();
    pages::SlowPath path;
    const std::size_t before = limits::commit_budget().committed();
    EXPECT_EQ(ServedPlan::make(std::move(plan), testing::pool_of_tests(), {}, path), nullptr);
    EXPECT_NE(path.refusal.limit_bytes, 0);
    EXPECT_LE(limits::commit_budget().committed(), before);
}

TEST(ServedPlan, RejectsAPlanAboveMaxBytes) {
    LearnedPlan plan = testing::plan_of({{0, PlanTables::max_bytes / 64 + 1, 1}});
    pages::SlowPath path;
    EXPECT_THROW(ServedPlan::make(std::move(plan), testing::pool_of_tests(), {}, path),
                 std::invalid_argument);
}

}  // namespace
}  // namespace tensorpool::planned
