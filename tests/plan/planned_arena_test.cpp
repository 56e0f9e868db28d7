#include <tensorpool/planned_arena.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "plan/arena_tools.hpp"
#include "support/temporary_path.hpp"

namespace tensorpool {
namespace {

using planned::testing::iterate;
using State = PlannedArenaStatistics::State;

TEST(PlannedArena, LearnsOneIterationAndServesTheNext) {
    MemoryPool pool;
    PlannedArena arena({.pool = &pool});
    for (int iteration = 0; iteration < 3; ++iteration) {
        const IterationScope scope(arena);
        void* a = arena.allocate(1000);
        void* b = arena.allocate(5000, 4096);
        std::memset(a, 1, 1000);
        std::memset(b, 2, 5000);
        arena.deallocate(a);
        void* c = arena.allocate(700);
        arena.deallocate(b);
        arena.deallocate(c, 700);
    }
    const PlannedArenaStatistics statistics = arena.statistics();
    EXPECT_EQ(statistics.state, State::serving);
    EXPECT_EQ(statistics.iterations, 3);
    EXPECT_EQ(statistics.plans, 1);
    EXPECT_EQ(statistics.buffers, 3);
    EXPECT_EQ(statistics.served, 6);
    EXPECT_EQ(statistics.from_pool, 3);
    EXPECT_EQ(statistics.in_use_bytes, 0);
    EXPECT_EQ(statistics.pool_in_use_bytes, 0);
    EXPECT_EQ(statistics.lower_bound_bytes, 1024 + 5056);
    EXPECT_EQ(statistics.plan_peak_bytes, 1024 + 5056);
    EXPECT_EQ(statistics.pool_peak_bytes, 1024 + 8192);
    EXPECT_EQ(pool.get_total_allocated(), 0);
}

TEST(PlannedArena, ServesTheSameAddressesInEveryIteration) {
    PlannedArena arena;
    iterate(arena, {100, 2000});
    void* first[2] = {};
    for (int iteration = 0; iteration < 3; ++iteration) {
        const IterationScope scope(arena);
        void* const blocks[] = {arena.allocate(100), arena.allocate(2000)};
        if (iteration == 0) std::memcpy(first, blocks, sizeof first);
        EXPECT_EQ(std::memcmp(first, blocks, sizeof first), 0);
        for (void* const block : blocks) arena.deallocate(block);
    }
}

TEST(PlannedArena, StatisticsOfMemoryInUseAreExact) {
    MemoryPool pool;
    PlannedArena arena({.pool = &pool});
    iterate(arena, {100, 2000});
    arena.begin_iteration();
    void* const planned = arena.allocate(100);
    void* const larger = arena.allocate(3000);
    EXPECT_EQ(arena.statistics().in_use_bytes, 128);
    EXPECT_EQ(arena.statistics().pool_in_use_bytes, 4096);
    EXPECT_EQ(arena.statistics().too_large, 1);
    EXPECT_EQ(arena.statistics().from_pool, 3);
    arena.deallocate(planned);
    arena.deallocate(larger);
    EXPECT_EQ(arena.statistics().in_use_bytes, 0);
    EXPECT_EQ(arena.statistics().pool_in_use_bytes, 0);
    arena.end_iteration();
}

TEST(PlannedArena, IgnoresZeroBytesAndNull) {
    PlannedArena arena;
    iterate(arena, {100, 200});
    const IterationScope scope(arena);
    EXPECT_EQ(arena.allocate(0), nullptr);
    EXPECT_EQ(arena.try_allocate(0), nullptr);
    arena.deallocate(nullptr);
    void* const block = arena.allocate(100);
    arena.deallocate(block);
    EXPECT_EQ(arena.statistics().served, 1);
}

TEST(PlannedArena, RejectsAlignmentsThatAreNotPowersOfTwo) {
    PlannedArena arena({.name = "a"});
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{96}}) {
        EXPECT_THROW(arena.allocate(100, alignment), std::invalid_argument) << alignment;
        EXPECT_EQ(arena.try_allocate(100, alignment), nullptr) << alignment;
    }
}

TEST(PlannedArena, AlignsBlocks) {
    PlannedArena arena;
    for (int iteration = 0; iteration < 2; ++iteration) {
        const IterationScope scope(arena);
        for (const std::size_t alignment : std::vector<std::size_t>{1, 64, 256, 8192, 1 << 22}) {
            void* const block = arena.allocate(100, alignment);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0);
            arena.deallocate(block);
        }
    }
    EXPECT_EQ(arena.statistics().served, 5);
}

TEST(PlannedArena, RejectsNestedIterations) {
    PlannedArena arena;
    EXPECT_THROW(arena.end_iteration(), std::logic_error);
    arena.begin_iteration();
    EXPECT_THROW(arena.begin_iteration(), std::logic_error);
    EXPECT_THROW(arena.relearn(), std::logic_error);
    arena.end_iteration();
}

TEST(PlannedArena, RejectsInvalidOptions) {
    EXPECT_THROW(PlannedArena({.learn_iterations = 0}), std::invalid_argument);
}

TEST(PlannedArena, CutsTheNameToTheLengthInStatistics) {
    PlannedArena arena({.name = std::string(60, 'n')});
    EXPECT_EQ(arena.name(), std::string(47, 'n'));
    EXPECT_EQ(arena.statistics().name, std::string(47, 'n'));
}

TEST(PlannedArena, PoolServesRequestsOutsideOfIterations) {
    PlannedArena arena;
    iterate(arena, {100});
    void* const block = arena.allocate(100);
    EXPECT_EQ(arena.statistics().served, 0);
    EXPECT_EQ(arena.statistics().from_pool, 2);
    iterate(arena, {100});
    arena.deallocate(block);
    EXPECT_EQ(arena.statistics().served, 1);
}

class SavedPlan : public ::testing::Test {
protected:
    SavedPlan() { iterate(learned, {100, 2000, 300}); }

    const tensorpool::testing::TemporaryPath file{".plan"};
    const std::string path = file.text();
    PlannedArena learned;
};

TEST_F(SavedPlan, ServesFromTheFirstIterationOn) {
    learned.save(path);
    PlannedArena arena;
    arena.load(path);
    EXPECT_EQ(arena.statistics().state, State::serving);
    EXPECT_EQ(arena.sequence_checksum(), learned.sequence_checksum());
    iterate(arena, {100, 2000, 300});
    EXPECT_EQ(arena.statistics().served, 3);
    EXPECT_EQ(arena.statistics().from_pool, 0);
    EXPECT_EQ(arena.statistics().pool_peak_bytes, learned.statistics().pool_peak_bytes);
}

TEST_F(SavedPlan, ReplacesAPlanWithBlocksInUse) {
    learned.save(path);
    PlannedArena arena;
    iterate(arena, {64});
    arena.begin_iteration();
    void* const block = arena.allocate(64);
    std::memset(block, 7, 64);
    EXPECT_THROW(arena.load(path), std::logic_error);
    arena.end_iteration();
    arena.load(path);
    iterate(arena, {100, 2000, 300});
    EXPECT_EQ(static_cast<unsigned char*>(block)[63], 7);
    arena.deallocate(block);
    EXPECT_EQ(arena.statistics().in_use_bytes, 0);
    EXPECT_EQ(arena.statistics().served, 4);
}

TEST_F(SavedPlan, DamagedPlanIsRejectedWithoutEffect) {
    std::ostringstream out;
    learned.save(out);
    std::string bytes = out.str();
    bytes[70] ^= 1;
    std::istringstream in(bytes);
    EXPECT_THROW(learned.load(in), std::runtime_error);
    iterate(learned, {100, 2000, 300});
    EXPECT_EQ(learned.statistics().served, 3);
}

TEST_F(SavedPlan, FailedSaveKeepsTheFile) {
    learned.save(path);
    learned.relearn();
    EXPECT_THROW(learned.save(path), std::logic_error);
    learned.load(path);
    EXPECT_EQ(learned.statistics().state, State::serving);
}

TEST_F(SavedPlan, NamesAFileThatCannotBeOpened) {
    const std::string nowhere = "/nowhere/a.plan";
    for (const bool saves : {true, false}) {
        try {
            saves ? learned.save(nowhere) : learned.load(nowhere);
            ADD_FAILURE();
        } catch (const std::system_error& error) {
            EXPECT_NE(std::string(error.what()).find(nowhere), std::string::npos);
            EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
        }
    }
}

TEST(PlannedArena, SaveWithoutAPlanThrows) {
    PlannedArena arena;
    std::ostringstream out;
    EXPECT_THROW(arena.save(out), std::logic_error);
    EXPECT_EQ(arena.sequence_checksum(), 0);
}

}  // namespace
}  // namespace tensorpool
