// Marks, releases and resets of a scratch.

#include <tensorpool/scratch.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "arena/scratch/scratch_tools.hpp"
#include "platform/platform.hpp"

namespace tensorpool {
namespace {

using namespace testing;

std::string refusal_of(Scratch& scratch, const Scratch::Mark& mark) {
    const std::size_t used = scratch.used();
    try {
        scratch.release_to(mark);
    } catch (const std::logic_error& error) {
        EXPECT_EQ(scratch.used(), used);
        const std::string what = error.what();
        const std::string begin =
            std::string("tensorpool: scratch of ") + scratch.statistics().name + ": release_to: ";
        return what.substr(0, begin.size()) == begin ? what.substr(begin.size()) : what;
    }
    return "none";
}

TEST(ScratchMark, ReleaseEndsLaterAllocations) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        void* const before = fill(scratch.allocate(100), 100, 1);
        const Scratch::Mark mark = scratch.mark();
        void* const after = scratch.allocate(100);
        for (int round = 0; round < 3; ++round) {
            scratch.release_to(mark);
            EXPECT_EQ(scratch.used(), 128U);
            EXPECT_EQ(scratch.allocate(1000), after);
        }
        EXPECT_TRUE(is_filled(before, 100, 1));
        EXPECT_EQ(scratch.peak(), 128U + 1024U);
    });
}

TEST(ScratchMark, ReleaseOverChunksReusesThem) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const Scratch::Mark start = scratch.mark();
        void* const first = fill(scratch.allocate(400 * kib), 400 * kib, 1);
        const Scratch::Mark mark = scratch.mark();
        void* const second = scratch.allocate(mib);
        void* const third = scratch.allocate(5 * mib);
        const std::uint64_t growths = scratch.statistics().growths;
        scratch.release_to(mark);
        EXPECT_EQ(scratch.used(), 400 * kib);
        EXPECT_EQ(scratch.allocate(mib), second);
        EXPECT_EQ(scratch.allocate(5 * mib), third);
        EXPECT_TRUE(is_filled(first, 400 * kib, 1));
        scratch.release_to(start);
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_EQ(scratch.allocate(1), first);
        EXPECT_EQ(scratch.statistics().growths, growths);
    });
}

TEST(ScratchMark, MarkInAReleasedChunkIsStale) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const Scratch::Mark start = scratch.mark();
        scratch.allocate(mib);
        const Scratch::Mark inside = scratch.mark();
        scratch.release_to(inside);
        scratch.release_to(start);
        EXPECT_EQ(refusal_of(scratch, inside), "the mark is stale: a release went below it since");
        scratch.trim();
        EXPECT_EQ(refusal_of(scratch, inside), "the mark is stale: a release went below it since");
        scratch.release_to(start);
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_NE(fill(scratch.allocate(100), 100, 1), nullptr);
    });
}

TEST(ScratchMark, OfAnotherScratchIsRefused) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        scratch.allocate(100);
        Scratch::Mark mark;
        EXPECT_EQ(refusal_of(scratch, mark), "the mark is empty");
        in_new_thread([&] { mark = Scratch::local().mark(); });
        EXPECT_EQ(refusal_of(scratch, mark), "the mark belongs to another scratch");
    });
}

TEST(ScratchMark, OfADestroyedScratchIsRefusedByItsSuccessor) {
    alignas(64) std::byte buffer[1024];
    std::optional<Scratch::Mark> mark;
    alignas(Scratch) std::byte place[sizeof(Scratch)];
    auto* one = new (place) Scratch(Scratch::over(buffer));
    one->allocate(100);
    mark = one->mark();
    one->~Scratch();
    one = new (place) Scratch(Scratch::over(std::span(buffer).first(64)));
    EXPECT_EQ(refusal_of(*one, *mark), "the mark belongs to another scratch");
    one->~Scratch();
}

TEST(ScratchMark, OfAnotherScopeIsRefused) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const Scratch::Mark outside = scratch.mark();
        Scratch::Mark inside;
        {
            const ScratchScope scope;
            scratch.allocate(100);
            EXPECT_EQ(refusal_of(scratch, outside), "the mark was made in another scope");
            inside = scratch.mark();
            const ScratchScope inner;
            EXPECT_EQ(refusal_of(scratch, inside), "the mark was made in another scope");
        }
        EXPECT_EQ(refusal_of(scratch, inside), "the mark was made in another scope");
        {
            const ScratchScope next;
            EXPECT_EQ(refusal_of(scratch, inside), "the mark was made in another scope");
        }
        scratch.release_to(outside);
    });
}

TEST(ScratchMark, InAScopeIsValidUntilTheScopeEnds) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        scratch.allocate(64);
        {
            const ScratchScope scope;
            scratch.allocate(64);
            const Scratch::Mark mark = scratch.mark();
            {
                const ScratchScope inner;
                scratch.allocate(mib);
                scratch.release_to(scratch.mark());
            }
            scratch.allocate(3 * mib);
            scratch.release_to(mark);
            EXPECT_EQ(scratch.used(), 128U);
        }
        EXPECT_EQ(scratch.used(), 64U);
    });
}

TEST(ScratchMark, AtOffsetZeroSurvivesJoining) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const Scratch::Mark mark = scratch.mark();
        for (int round = 0; round < 3; ++round) {
            {
                const ScratchScope scope;
                scratch.allocate(3 * mib);
            }
            void* const block = fill(scratch.allocate(mib), mib, 1);
            scratch.release_to(mark);
            EXPECT_EQ(scratch.used(), 0U);
            EXPECT_EQ(scratch.allocate(1), block);
            scratch.release_to(mark);
        }
    });
}

TEST(ScratchReset, EndsEverythingAndJoinsTheChunks) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        scratch.reset();
        scratch.allocate(100);
        const Scratch::Mark mark = scratch.mark();
        scratch.allocate(9 * mib);
        scratch.reset();
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_EQ(scratch.capacity(), 18 * mib + platform::page_bytes());
        EXPECT_EQ(refusal_of(scratch, mark), "the mark is stale: a release went below it since");
    });
}

TEST(ScratchReset, InsideAScopeIsRefused) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        {
            const ScratchScope scope;
            void* const block = fill(scratch.allocate(100), 100, 1);
            try {
                scratch.reset();
                ADD_FAILURE();
            } catch (const std::logic_error& error) {
                EXPECT_EQ(error.what(), std::string("tensorpool: scratch of ") +
                                            scratch.statistics().name +
                                            ": reset: inside an open ScratchScope");
            }
            EXPECT_EQ(scratch.used(), 128U);
            EXPECT_TRUE(is_filled(block, 100, 1));
        }
        scratch.reset();
    });
}

}  // namespace
}  // namespace tensorpool
