#include <tensorpool/tensorpool_planned.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <tensorpool/planned_arena.hpp>

namespace {

struct Destroyer {
    void operator()(tensorpool_planned_arena* arena) const {
        tensorpool_planned_arena_destroy(arena);
    }
};
using OwnedArena = std::unique_ptr<tensorpool_planned_arena, Destroyer>;

tensorpool_planned_arena_options defaults() {
    tensorpool_planned_arena_options options;
    EXPECT_EQ(tensorpool_planned_arena_options_init(&options, sizeof options), tensorpool_ok);
    return options;
}

bool last_error_has(const char* text) {
    return std::string(tensorpool_last_error()).find(text) != std::string::npos;
}

/// One iteration with one block.
void run_iteration(tensorpool_planned_arena* arena, std::size_t bytes) {
    EXPECT_EQ(tensorpool_planned_arena_begin_iteration(arena), tensorpool_ok);
    void* const block = tensorpool_planned_arena_allocate(arena, bytes);
    EXPECT_NE(block, nullptr);
    tensorpool_planned_arena_deallocate(arena, block);
    EXPECT_EQ(tensorpool_planned_arena_end_iteration(arena), tensorpool_ok);
}

TEST(CPlanned, DefaultsAreThoseOfPlannedArenaOptions) {
    const tensorpool_planned_arena_options options = defaults();
    const tensorpool::PlannedArenaOptions expected;
    EXPECT_EQ(options.struct_bytes, sizeof options);
    EXPECT_EQ(options.name, expected.name);
    EXPECT_EQ(options.pool, nullptr);
    EXPECT_EQ(options.learn_iterations, expected.learn_iterations);
    EXPECT_EQ(options.drift_iterations, expected.drift_iterations);
    EXPECT_EQ(options.planning_budget_ns,
              static_cast<std::uint64_t>(expected.planning_budget.count()));
    EXPECT_EQ(options.tolerated_misses, expected.tolerated_misses);
    EXPECT_EQ(options.checks, static_cast<int>(expected.checks));
    EXPECT_EQ(options.executor, nullptr);
}

TEST(CPlanned, InvalidOptionsAreRefused) {
    tensorpool_planned_arena_options options = defaults();
    options.learn_iterations = 0;
    EXPECT_EQ(tensorpool_planned_arena_create(&options), nullptr);
    EXPECT_TRUE(last_error_has("learn_iterations")) << tensorpool_last_error();
    options = defaults();
    options.checks = 5;
    EXPECT_EQ(tensorpool_planned_arena_create(&options), nullptr);
    EXPECT_TRUE(last_error_has("checks is 5")) << tensorpool_last_error();
    options = defaults();
    options.planning_budget_ns = UINT64_MAX;
    EXPECT_EQ(tensorpool_planned_arena_create(&options), nullptr);
    EXPECT_TRUE(last_error_has("planning_budget_ns")) << tensorpool_last_error();
}

TEST(CPlanned, UsesTheGivenPool) {
    tensorpool_pool* const pool = tensorpool_create(nullptr);
    tensorpool_planned_arena_options options = defaults();
    options.pool = pool;
    {
        const OwnedArena arena(tensorpool_planned_arena_create(&options));
        run_iteration(arena.get(), 100'000);
    }
    tensorpool_statistics statistics;
    statistics.struct_bytes = sizeof statistics;
    ASSERT_EQ(tensorpool_read_statistics(pool, &statistics), tensorpool_ok);
    EXPECT_EQ(statistics.allocations, 1U);
    EXPECT_EQ(tensorpool_destroy(pool), tensorpool_ok);
}

TEST(CPlanned, JobMayRunAfterTheArenaIsGone) {
    tensorpool_planning_job* kept = nullptr;
    tensorpool_planned_arena_options options = defaults();
    options.executor = [](tensorpool_planning_job* job, void* user) {
        *static_cast<tensorpool_planning_job**>(user) = job;
    };
    options.executor_user = &kept;
    {
        const OwnedArena arena(tensorpool_planned_arena_create(&options));
        for (int i = 0; i < 3; ++i) run_iteration(arena.get(), 100'000);
        tensorpool_planned_arena_statistics statistics;
        statistics.struct_bytes = sizeof statistics;
        ASSERT_EQ(tensorpool_planned_arena_read_statistics(arena.get(), &statistics),
                  tensorpool_ok);
        EXPECT_EQ(statistics.state, static_cast<unsigned>(tensorpool_planned_arena_planning));
    }
    ASSERT_NE(kept, nullptr);
    tensorpool_planning_job_run(kept);
    tensorpool_planning_job_run(nullptr);
}

TEST(CPlanned, PlanIsSavedAndLoaded) {
    const std::string path = ::testing::TempDir() + "c_planned_test.plan";
    std::uint64_t checksum = 0;
    {
        const OwnedArena arena(tensorpool_planned_arena_create(nullptr));
        EXPECT_EQ(tensorpool_planned_arena_save(arena.get(), path.c_str()),
                  tensorpool_other_failure)
            << "there is no plan yet";
        for (int i = 0; i < 3; ++i) run_iteration(arena.get(), 200'000);
        ASSERT_EQ(tensorpool_planned_arena_save(arena.get(), path.c_str()), tensorpool_ok);
        checksum = tensorpool_planned_arena_sequence_checksum(arena.get());
        EXPECT_NE(checksum, 0U);
        EXPECT_EQ(tensorpool_planned_arena_relearn(arena.get()), tensorpool_ok);
        EXPECT_EQ(tensorpool_planned_arena_sequence_checksum(arena.get()), 0U);
    }
    const OwnedArena arena(tensorpool_planned_arena_create(nullptr));
    ASSERT_EQ(tensorpool_planned_arena_load(arena.get(), path.c_str()), tensorpool_ok);
    EXPECT_EQ(tensorpool_planned_arena_sequence_checksum(arena.get()), checksum);
    EXPECT_EQ(tensorpool_planned_arena_load(arena.get(), "no such plan"), tensorpool_other_failure);
    EXPECT_TRUE(last_error_has("no such plan")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_planned_arena_load(arena.get(), nullptr), tensorpool_invalid_argument);
    std::remove(path.c_str());
}

TEST(CPlanned, NullIsAFailure) {
    EXPECT_EQ(tensorpool_planned_arena_allocate(nullptr, 1), nullptr);
    EXPECT_TRUE(last_error_has("arena is NULL")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_planned_arena_begin_iteration(nullptr), tensorpool_invalid_argument);
    EXPECT_LT(tensorpool_planned_arena_report_json(nullptr, nullptr, 0), 0);
    tensorpool_planned_arena_deallocate(nullptr, nullptr);
    tensorpool_planned_arena_destroy(nullptr);
}

}  // namespace
