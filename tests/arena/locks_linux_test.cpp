// The calls of each class wait while another thread holds the lock, as it does during a fork.

#include <gtest/gtest.h>

#include <memory>

#include <tensorpool/arena.hpp>

#include "arena/arena_state.hpp"
#include "arena/arena_test.hpp"
#include "arena/scratch/scratch_state.hpp"
#include "platform/tools/memory_tools.hpp"
#include "support/waits_for_lock_linux.hpp"

namespace tensorpool::arena {
namespace {

using testing::waits_for;

class ArenaLocks : public ::testing::Test {
protected:
    void SetUp() override {
        if (!testing::can_see_waits()) GTEST_SKIP() << "/proc does not show what threads wait for";
    }
};

TEST_F(ArenaLocks, CallsOfTheTableOfOperatorsWait) {
    ScratchOperators& operators = scratch_operators();
    const detail::ScratchOperator* found = nullptr;
    EXPECT_TRUE(waits_for(operators, [&] { found = operators.find_or_add("waiting").found; }));
    EXPECT_TRUE(waits_for(operators, [&] { EXPECT_EQ(operators.name_of(found), "waiting"); }));
    EXPECT_TRUE(waits_for(operators, [&] { EXPECT_FALSE(operators.report().operators.empty()); }));
}

TEST_F(ArenaLocks, CallsOfTheRegistryWaitForAFork) {
    struct {
        void lock() { arena_registry().before_fork(); }
        void unlock() { arena_registry().after_fork_in_parent(); }
    } fork;
    std::unique_ptr<Arena> arena;
    EXPECT_TRUE(waits_for(fork, [&] { arena = std::make_unique<Arena>(testing::bare_options()); }));
    ASSERT_NE(arena, nullptr);
    EXPECT_TRUE(waits_for(fork, [] { arena_registry().show_quick_paths(false); }));
    EXPECT_TRUE(
        waits_for(fork, [] { arena_registry().show_quick_paths(!platform::has_memory_tool()); }));
    EXPECT_TRUE(waits_for(fork, [&] { arena.reset(); }));
}

}  // namespace
}  // namespace tensorpool::arena
