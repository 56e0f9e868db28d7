#include <gtest/gtest.h>

#include <vector>

#include "formats/trace/recording.hpp"

namespace tensorpool::command::trace {
namespace {

using enum TraceAction;

constexpr std::uint32_t never = Lifetime::none;

/// Makes a recording of two processes, whose threads have their numbers, with a pool (1), an arena
/// (2), a scratch (3) and another pool (4).
Recording with(std::vector<Call> calls) {
    Recording recording;
    recording.processes.resize(2);
    recording.threads = {{.process = 0, .number = 1}, {.process = 1, .number = 2}};
    recording.sources.resize(5);
    recording.calls = std::move(calls);
    for (std::size_t i = 0; i < recording.calls.size(); ++i) recording.calls[i].time_ns = i;
    return recording;
}

Call call(TraceAction action, std::uint64_t address, std::uint64_t bytes = 0,
          std::uint32_t source = 1, std::uint32_t thread = 0) {
    return {
        .address = address, .bytes = bytes, .thread = thread, .source = source, .action = action};
}

Call in_arena(TraceAction action, std::uint64_t address, std::uint64_t bytes = 0) {
    return call(action, address, bytes, 2);
}
Call in_scratch(TraceAction action, std::uint64_t address, std::uint64_t bytes = 0) {
    return call(action, address, bytes, 3);
}

using Span = std::pair<std::uint32_t, std::uint32_t>;

std::vector<Span> spans(std::vector<Call> calls) {
    std::vector<Span> found;
    for (const Lifetime& lifetime : lifetimes_of(with(std::move(calls)))) {
        found.emplace_back(lifetime.begin, lifetime.end);
    }
    return found;
}

TEST(Lifetimes, LastFromAllocationToDeallocation) {
    const auto lifetimes =
        lifetimes_of(with({call(allocate, 0x100, 10), call(allocate, 0x200, 20),
                           call(deallocate, 0x100, 16), call(allocate, 0x100, 30)}));
    ASSERT_EQ(lifetimes.size(), 3U);
    EXPECT_EQ(lifetimes[0].begin, 0U);
    EXPECT_EQ(lifetimes[0].end, 2U);
    EXPECT_EQ(lifetimes[0].bytes, 10U);
    EXPECT_EQ(lifetimes[0].address, 0x100U);
    EXPECT_EQ(lifetimes[0].source, 1U);
    EXPECT_EQ(lifetimes[1].end, never);
    EXPECT_EQ(lifetimes[2].begin, 3U);
    EXPECT_EQ(lifetimes[2].bytes, 30U);
}

TEST(Lifetimes, OfEarlierBlocksComeFirst) {
    const auto lifetimes =
        lifetimes_of(with({call(allocate, 0x100, 10), call(deallocate, 0x900, 64, 4),
                           call(resize, 0x800, 50), call(deallocate, 0x800, 64)}));
    ASSERT_EQ(lifetimes.size(), 4U);
    EXPECT_EQ(lifetimes[0].begin, never);
    EXPECT_EQ(lifetimes[0].end, 1U);
    EXPECT_EQ(lifetimes[0].bytes, 64U);
    EXPECT_EQ(lifetimes[0].source, 4U);
    EXPECT_EQ(lifetimes[1].begin, never);
    EXPECT_EQ(lifetimes[1].end, 2U);
    EXPECT_EQ(lifetimes[2].begin, 0U);
    EXPECT_EQ(lifetimes[3].begin, 2U);
    EXPECT_EQ(lifetimes[3].end, 3U);
    EXPECT_TRUE(lifetimes[3].continues);
}

TEST(Lifetimes, AResizeEndsOneAndBeginsAnother) {
    const auto lifetimes = lifetimes_of(
        with({call(allocate, 0x100, 10), call(resize, 0x100, 12), call(deallocate, 0x100, 16)}));
    ASSERT_EQ(lifetimes.size(), 2U);
    EXPECT_EQ(lifetimes[0].end, 1U);
    EXPECT_FALSE(lifetimes[0].continues);
    EXPECT_EQ(lifetimes[1].begin, 1U);
    EXPECT_EQ(lifetimes[1].end, 2U);
    EXPECT_EQ(lifetimes[1].bytes, 12U);
    EXPECT_TRUE(lifetimes[1].continues);
}

TEST(Lifetimes, AnArenasReleaseEndsBlocksFromItsPositionOn) {
    EXPECT_EQ(spans({in_arena(arena_allocate, 0x1000, 10), in_arena(arena_mark, 0x1040, 0x1000),
                     in_arena(arena_allocate, 0x1080, 10), in_arena(arena_allocate, 0x1040, 10),
                     in_arena(arena_release, 0x1040, 0x1000), in_arena(arena_allocate, 0x1040, 10),
                     call(allocate, 0x2000, 5), in_arena(arena_release, 0x1000, 0x1000)}),
              (std::vector<Span>{{0, 7}, {2, 4}, {3, 4}, {5, 7}, {6, never}}));
}

TEST(Lifetimes, AScratchsReleaseEndsBlocksFromItsOffsetOn) {
    // Chunks may lie anywhere: the second block has a lower address and a higher offset.
    EXPECT_EQ(spans({in_scratch(scratch_mark, 0), in_scratch(scratch_allocate, 0x9000, 64),
                     in_scratch(scratch_mark, 64), in_scratch(scratch_allocate, 0x1000, 64),
                     in_scratch(scratch_release, 64), in_scratch(scratch_mark, 64),
                     in_scratch(scratch_allocate, 0x1000, 64), in_scratch(scratch_release, 0)}),
              (std::vector<Span>{{1, 7}, {3, 4}, {6, 7}}));
}

TEST(Lifetimes, TheNextMarkReplacesADroppedReleaseOfAScratch) {
    EXPECT_EQ(spans({in_scratch(scratch_mark, 0), in_scratch(scratch_allocate, 0x1000, 64),
                     in_scratch(scratch_mark, 64), in_scratch(scratch_allocate, 0x1040, 64),
                     in_scratch(scratch_mark, 64), in_scratch(scratch_allocate, 0x2040, 64)}),
              (std::vector<Span>{{1, never}, {3, 4}, {5, never}}));
}

TEST(Lifetimes, DestructionEndsAllRemainingBlocks) {
    EXPECT_EQ(spans({call(allocate, 0x100, 1, 1), call(allocate, 0x200, 1, 4),
                     in_arena(arena_allocate, 0x1000, 1), in_scratch(scratch_mark, 0),
                     in_scratch(scratch_allocate, 0x2000, 1), call(gone, 0, 0, 4),
                     call(gone, 0, 0, 2), call(gone, 0, 0, 3), call(deallocate, 0x100, 1, 1)}),
              (std::vector<Span>{{0, 8}, {1, 5}, {2, 6}, {4, 7}}));
}

TEST(Lifetimes, NothingEndsTwiceAfterDestruction) {
    EXPECT_EQ(spans({call(allocate, 0x100, 1), call(deallocate, 0x100, 1), call(gone, 0),
                     call(allocate, 0x100, 1, 4), call(gone, 0)}),
              (std::vector<Span>{{0, 1}, {3, never}}));
}

TEST(Lifetimes, ABlockWithADroppedEndEndsWhenItsAddressIsReused) {
    EXPECT_EQ(spans({call(allocate, 0x100, 1), call(allocate, 0x100, 2), call(deallocate, 0x100, 2),
                     in_arena(arena_allocate, 0x1000, 8), call(allocate, 0x1000, 8),
                     in_arena(arena_release, 0x1000, 0x1000)}),
              (std::vector<Span>{{0, 1}, {1, 2}, {3, 4}, {4, never}}));
}

TEST(Lifetimes, OfTwoProcessesAreSeparate) {
    EXPECT_EQ(spans({call(allocate, 0x100, 1, 1, 0), call(allocate, 0x100, 1, 4, 1),
                     call(deallocate, 0x100, 1, 4, 1), call(deallocate, 0x100, 1, 1, 0)}),
              (std::vector<Span>{{0, 3}, {1, 2}}));
}

TEST(Lifetimes, FailuresScopesAndMarksHaveNone) {
    EXPECT_TRUE(spans({call(refuse, 0, 1), call(scope_begin, 0), call(scope_end, 0),
                       in_arena(arena_mark, 0x10), in_scratch(scratch_mark, 0)})
                    .empty());
}

// A device may take its memory from a pool, and another device may use the same addresses.
TEST(Lifetimes, OfADeviceDoNotEndOthersAtTheSameAddress) {
    Recording recording = with({call(allocate, 0x100, 100, 1), call(allocate, 0x100, 90, 4),
                                call(deallocate, 0x100, 90, 4), call(deallocate, 0x100, 128, 1)});
    recording.sources[4].kind = TraceSource::device;
    const auto lifetimes = lifetimes_of(recording);
    ASSERT_EQ(lifetimes.size(), 2U);
    EXPECT_EQ(lifetimes[0].end, 3U);
    EXPECT_EQ(lifetimes[1].begin, 1U);
    EXPECT_EQ(lifetimes[1].end, 2U);
}

TEST(Lifetimes, OfADevicesBlocksContinueWhileDeferred) {
    Recording recording = with({call(allocate, 0x100, 100, 4), call(defer, 0x100, 512, 4),
                                call(deallocate, 0x100, 512, 4), call(defer, 0x900, 1, 4)});
    recording.sources[4].kind = TraceSource::device;
    recording.calls[0].stream = 3;
    const auto lifetimes = lifetimes_of(recording);
    ASSERT_EQ(lifetimes.size(), 1U);
    EXPECT_EQ(lifetimes[0].deferred, 1U);
    EXPECT_EQ(lifetimes[0].end, 2U);
    EXPECT_EQ(lifetimes[0].stream, 3U);
}

TEST(Lifetimes, OfADevicesBlocksEndWithItsAllocator) {
    Recording recording =
        with({call(allocate, 0x100, 100, 4), call(gone, 0, 0, 4), call(allocate, 0x100, 100, 1)});
    recording.sources[4].kind = TraceSource::device;
    const auto lifetimes = lifetimes_of(recording);
    EXPECT_EQ(lifetimes.at(0).end, 1U);
    EXPECT_EQ(lifetimes.at(1).end, never);
}

}  // namespace
}  // namespace tensorpool::command::trace
