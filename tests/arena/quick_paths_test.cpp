// While a recording is active, all calls of arenas and scratches take the slow path, which reports
// them.

#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>

#include <tensorpool/scratch.hpp>

#include "arena/arena_state.hpp"
#include "arena/arena_test.hpp"
#include "arena/scratch/scratch_state.hpp"
#include "events/recorder_hooks.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool {
namespace {

using testing::bare_options;

/// Counts the calls that are reported.
class QuickPaths : public ::testing::Test {
protected:
    QuickPaths() {
        counts_.clear();
        events::recorder_hooks.record = [](TraceAction action, std::uint64_t, const void*,
                                           std::size_t,
                                           std::size_t) noexcept { ++counts_[action]; };
    }
    // A memory tool must see each allocation, so there they are hidden otherwise.
    ~QuickPaths() override {
        platform::has_memory_tool() ? hide() : show();
        events::recorder_hooks.record = nullptr;
    }
    static void hide() {
        arena::arena_registry().show_quick_paths(false);
        arena::scratch_registry().show_quick_paths(false);
    }
    static void show() {
        arena::scratch_registry().show_quick_paths(true);
        arena::arena_registry().show_quick_paths(true);
    }
    static unsigned count(TraceAction action) { return counts_[action]; }

private:
    inline static std::map<TraceAction, unsigned> counts_;
};

TEST_F(QuickPaths, CallsOfArenasOldAndNewAreReportedWhileHidden) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "the tool closes quick paths";
    Arena old(bare_options());
    old.allocate(64);
    const unsigned before = count(TraceAction::arena_allocate);
    old.allocate(64);
    EXPECT_EQ(count(TraceAction::arena_allocate), before) << "inline";
    hide();
    Arena made(bare_options());
    for (int i = 0; i < 3; ++i) {
        old.allocate(64);
        made.allocate(64);
    }
    EXPECT_EQ(count(TraceAction::arena_allocate), before + 6);
    show();
    Arena last(bare_options());
    last.allocate(64);
    const unsigned after = count(TraceAction::arena_allocate);
    for (Arena* const arena : {&old, &made, &last}) arena->allocate(64);
    EXPECT_EQ(count(TraceAction::arena_allocate), after) << "inline again";
}

TEST_F(QuickPaths, ReleasesOfArenasAreReported) {
    Arena arena(bare_options());
    const Arena::Mark mark = arena.mark();
    arena.allocate(64);
    arena.release_to(mark);
    EXPECT_EQ(count(TraceAction::arena_release), 1U);
    arena.reset();
    EXPECT_EQ(count(TraceAction::arena_release), 2U);
}

TEST_F(QuickPaths, CallsOfScratchesThatAreMadeWhileHiddenAreReported) {
    hide();
    std::thread([] {
        Scratch& scratch = Scratch::local();
        const unsigned before = count(TraceAction::scratch_allocate);
        for (int i = 0; i < 3; ++i) scratch.allocate(64);
        EXPECT_EQ(count(TraceAction::scratch_allocate), before + 3);
    }).join();
}

}  // namespace
}  // namespace tensorpool
