#include "formats/trace/history.hpp"

#include <gtest/gtest.h>

#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::trace {
namespace {

using trace::testing::MadeRecording;

TEST(History, AssignsTheInnermostScope) {
    MadeRecording made;
    const auto outer = made.source(TraceSource::scope, "outer");
    const auto inner = made.source(TraceSource::scope, "inner");
    made.allocate(0x1000, 64);
    made.begin_scope(outer);
    made.allocate(0x2000, 64);
    made.begin_scope(inner);
    made.allocate(0x3000, 64);
    made.end_scope(inner);
    made.allocate(0x4000, 64);
    const History history(made.recording());
    EXPECT_EQ(history.facts(0).scope, BlockFacts::none);
    EXPECT_EQ(history.facts(1).scope, outer);
    EXPECT_EQ(history.facts(2).scope, inner);
    EXPECT_EQ(history.facts(3).scope, outer);
}

TEST(History, KeepsScopesOfThreadsSeparate) {
    MadeRecording made;
    const auto scope = made.source(TraceSource::scope, "scope");
    const auto other = made.thread(0, 71);
    made.begin_scope(scope);
    made.allocate(0x1000, 64).thread = other;
    const History history(made.recording());
    EXPECT_EQ(history.facts(0).scope, BlockFacts::none);
}

TEST(History, EndsAScopeThatIsNotTheInnermost) {
    MadeRecording made;
    const auto outer = made.source(TraceSource::scope, "outer");
    const auto inner = made.source(TraceSource::scope, "inner");
    made.end_scope(inner);  // begun before the recording
    made.begin_scope(outer);
    made.begin_scope(inner);
    made.end_scope(outer);
    made.allocate(0x1000, 64);
    made.end_scope(inner);
    made.allocate(0x2000, 64);
    const History history(made.recording());
    EXPECT_EQ(history.facts(0).scope, inner);
    EXPECT_EQ(history.facts(1).scope, BlockFacts::none);
}

TEST(History, ReadsBlockSizesFromFreesElseComputesThem) {
    MadeRecording made;
    const auto arena = made.source(TraceSource::arena, "arena");
    made.allocate(0x1000, 100);
    made.deallocate(0x1000, 512);
    made.allocate(0x2000, 100);
    made.call(TraceAction::arena_allocate, 0x9000, 100, arena);
    const History history(made.recording());
    EXPECT_EQ(history.facts(0).block_bytes, 512U);
    EXPECT_EQ(history.facts(1).block_bytes, 128U);
    EXPECT_EQ(history.facts(2).block_bytes, 100U);
}

TEST(History, ResizedBlocksBelongToTheirFirstCaller) {
    MadeRecording made;
    const auto scope = made.source(TraceSource::scope, "scope");
    const auto stack = made.stack({{0, 16}});
    made.begin_scope(scope);
    made.allocate(0x1000, 90'000).stack = stack;
    made.end_scope(scope);
    made.call(TraceAction::resize, 0x1000, 70'000);
    made.deallocate(0x1000, 98'304);
    const History history(made.recording());
    ASSERT_EQ(history.lifetimes().size(), 2U);
    for (const std::size_t lifetime : {0U, 1U}) {
        EXPECT_EQ(history.facts(lifetime).scope, scope);
        EXPECT_EQ(history.facts(lifetime).stack, stack);
        EXPECT_EQ(history.facts(lifetime).born, 1U);
        EXPECT_EQ(history.facts(lifetime).block_bytes, 98'304U);
    }
}

TEST(History, WalksEndsBeforeTheBeginningOfTheSameCall) {
    MadeRecording made;
    made.deallocate(0x7000, 64);  // made before the recording
    made.allocate(0x1000, 1);
    made.allocate(0x2000, 2);
    made.deallocate(0x1000, 64);
    made.call(TraceAction::resize, 0x2000, 3);
    std::string steps;
    const History history(made.recording());
    history.walk([&](std::uint32_t i) { steps += 'b' + std::to_string(i) + ' '; },
                 [&](std::uint32_t i) { steps += 'e' + std::to_string(i) + ' '; });
    EXPECT_EQ(steps, "b0 e0 b1 b2 e1 e2 b3 ");
}

}  // namespace
}  // namespace tensorpool::command::trace
