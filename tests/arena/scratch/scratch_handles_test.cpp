#include <tensorpool/pooled_allocation.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <deque>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/pooled_array.hpp>
#include <tensorpool/scratch.hpp>

#include "arena/scratch/scratch_tools.hpp"

namespace tensorpool {
namespace {

using namespace testing;

static_assert(MemorySource<Scratch> && ReleasingSource<Scratch>);

// Ends its handles from the first to the last.
std::vector<PooledAllocation> make_three(Scratch& scratch) {
    std::vector<PooledAllocation> handles;
    for (int i = 0; i < 3; ++i) handles.emplace_back(scratch, 100);
    return handles;
}

TEST(ScratchHandle, EndReturnsTheBlock) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope scope;
        scratch.allocate(100);
        {
            const PooledAllocation handle(scratch, 1000);
            EXPECT_EQ(scratch.used(), 128U + 1024U);
        }
        EXPECT_EQ(scratch.used(), 128U);
        EXPECT_EQ(scratch.peak(), 128U + 1024U);
        PooledArray<float> values(scratch, 10);
        EXPECT_EQ(values[9], 0.0F);
    });
}

TEST(ScratchHandle, WorksOutsideOfAnyScope) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        { const PooledAllocation handle(scratch, 3 * mib); }
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_GE(scratch.capacity(), 3 * mib) << "the chunks were joined";
    });
}

TEST(ScratchHandle, ReverseOrderReturnsAllBlocksAcrossChunksAndAlignments) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope scope;
        std::vector<PooledAllocation> handles;
        std::vector<std::size_t> used;
        for (std::size_t i = 0; i < 40; ++i) {
            used.push_back(scratch.used());
            handles.emplace_back(scratch, 100 * kib + i, std::size_t{64} << i % 8);
            fill(handles.back().get(), handles.back().size(), i);
        }
        EXPECT_GT(scratch.statistics().growths, 2U);
        for (std::size_t i = handles.size(); i-- > 0;) {
            EXPECT_TRUE(is_filled(handles[i].get(), handles[i].size(), i));
            handles.pop_back();
            EXPECT_EQ(scratch.used(), used[i]);
        }
    });
}

TEST(ScratchHandle, EndsWithinItsScopeWhereScopesNest) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope outer;
        const PooledAllocation low(scratch, 100);
        {
            const ScratchScope inner("ScratchHandle.inner");
            PooledAllocation one(scratch, 100);
            PooledAllocation two(scratch, 100);
            two = PooledAllocation();
            EXPECT_EQ(scratch.used(), 256U);
        }
        EXPECT_EQ(scratch.used(), 128U);
    });
}

TEST(ScratchHandle, ThatEndsBelowOthersWaitsForTheirEnds) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope scope;
        PooledAllocation low(scratch, 100);
        PooledAllocation middle(scratch, 3 * mib, 4096);
        PooledAllocation high(scratch, 100);
        fill(high.get(), high.size(), 1);
        const std::size_t used = scratch.used();
        low.reset();
        middle.reset();
        EXPECT_EQ(scratch.used(), used);
        EXPECT_TRUE(is_filled(high.get(), high.size(), 1));
        high.reset();
        EXPECT_EQ(scratch.used(), 0U);
    });
}

TEST(ScratchHandle, IsAssignedTheResultOfAFunctionOfIt) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope scope;
        {
            PooledAllocation x(scratch, 1000);
            for (unsigned i = 0; i < 3; ++i) {
                PooledAllocation next(scratch, x.size() + 1000);
                fill(next.get(), next.size(), i);
                x = std::move(next);
                EXPECT_TRUE(is_filled(x.get(), x.size(), i));
            }
        }
        EXPECT_EQ(scratch.used(), 0U);
        { const std::vector<PooledAllocation> three = make_three(scratch); }
        EXPECT_EQ(scratch.used(), 0U);
    });
}

TEST(ScratchHandle, ThatEndsBelowOtherMemoryWaitsForTheEndOfAScope) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        {
            const ScratchScope scope;
            scratch.allocate(100);
            PooledAllocation handle(scratch, 100);
            {
                const ScratchScope inner;
                scratch.allocate(100);
                handle.reset();
                EXPECT_EQ(scratch.used(), 3U * 128);
            }
            EXPECT_EQ(scratch.used(), 128U);
            PooledAllocation another(scratch, 100);
            scratch.allocate(100);
            another.reset();
            EXPECT_EQ(scratch.used(), 3U * 128);
        }
        EXPECT_EQ(scratch.used(), 0U);
    });
}

TEST(ScratchHandle, OfNoScopeMayEndInOneAndIsReturnedAfterIt) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        PooledAllocation handle(scratch, 100);
        {
            const ScratchScope scope;
            handle.reset();
            EXPECT_EQ(scratch.used(), 128U) << "the scope began above it";
            scratch.allocate(100);
        }
        EXPECT_EQ(scratch.used(), 0U);
    });
}

TEST(ScratchHandle, ThatWaitsKeepsMarksAboveItValid) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope scope;
        PooledAllocation handle(scratch, 100);
        const Scratch::Mark mark = scratch.mark();
        scratch.allocate(100);
        handle.reset();
        scratch.release_to(mark);
        EXPECT_EQ(scratch.used(), 128U);
        scratch.allocate(100);
        EXPECT_NO_THROW(scratch.release_to(mark));
        { const PooledAllocation last(scratch, 100); }
        EXPECT_EQ(scratch.used(), 0U);
    });
}

TEST(ScratchHandle, ReturnedBlockMakesMarksAboveStale) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope scope;
        PooledAllocation handle(scratch, 100);
        const Scratch::Mark mark = scratch.mark();
        handle.reset();
        scratch.allocate(1000);
        EXPECT_THROW(scratch.release_to(mark), std::logic_error);
    });
}

TEST(ScratchHandle, ReleaseLeavesTheBlockToTheScope) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        {
            const ScratchScope scope;
            PooledAllocation handle(scratch, 100);
            EXPECT_NE(handle.release(), nullptr);
            EXPECT_EQ(scratch.used(), 128U);
        }
        EXPECT_EQ(scratch.used(), 0U);
    });
}

TEST(ScratchHandle, ReleaseOfAStaleHandleLeavesTheBlockAtItsAddressAlone) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        PooledAllocation stale(scratch, 64);
        scratch.reset();
        PooledAllocation handle(scratch, 64);
        EXPECT_EQ(stale.release(), handle.get());
        EXPECT_EQ(scratch.used(), 64U);
        handle.reset();
        EXPECT_EQ(scratch.used(), 0U);
    });
}

TEST(ScratchHandle, RefusedRequestChangesNothing) {
    std::vector<std::byte> buffer(1024);
    Scratch scratch = Scratch::over(buffer);
    PooledAllocation handle(scratch, 100);
    const std::size_t used = scratch.used();
    EXPECT_THROW(PooledAllocation(scratch, 10'000), AllocationError);
    EXPECT_EQ(scratch.used(), used);
    handle.reset();
    EXPECT_EQ(scratch.used(), 0U);
}

// The misuse of a handle is reported when it ends.
class ScratchHandleDeathTest : public ::testing::Test {
protected:
    template <class Misuse>
    void expect_report(Misuse misuse, const std::string& line) {
        EXPECT_EXIT(in_new_thread(misuse), ::testing::KilledBySignal(SIGABRT), line);
    }
};

TEST_F(ScratchHandleDeathTest, EndAfterItsScope) {
    expect_report(
        [] {
            std::optional<PooledAllocation> handle;
            {
                const ScratchScope scope;
                handle.emplace(Scratch::local(), 100);
            }
            Scratch::local().allocate(100);
            handle.reset();
        },
        "fatal: scope-order .*\n  the end of a handle: scratch of thread [0-9]+: the handle owns "
        "the block of 100 B at .*, but its memory was released before; expected it to end before "
        "its ScratchScope and before any release");
}

TEST_F(ScratchHandleDeathTest, EndAfterItsScopeWhenOthersWereMade) {
    expect_report(
        [] {
            std::optional<PooledAllocation> handle;
            {
                const ScratchScope scope;
                handle.emplace(Scratch::local(), 100);
            }
            const PooledAllocation another(Scratch::local(), 200);
            handle.reset();
        },
        "its memory was released before; expected it to end before its ScratchScope and before any "
        "release");
}

TEST_F(ScratchHandleDeathTest, EndWhoseMemoryWasReleasedAndMeetsTheNewTop) {
    expect_report(
        [] {
            Scratch& scratch = Scratch::local();
            PooledAllocation handle(scratch, 100);
            scratch.reset();
            scratch.allocate(100);
            handle.reset();
        },
        "its memory was released before; expected it to end before its ScratchScope and before any "
        "release");
}

TEST_F(ScratchHandleDeathTest, EndAfterAResetWhenAnotherHasItsAddress) {
    expect_report(
        [] {
            Scratch& scratch = Scratch::local();
            PooledAllocation stale(scratch, 64);
            scratch.reset();
            const PooledAllocation another(scratch, 100);
            stale.reset();
        },
        "the handle owns the block of 64 B at .*, but its memory was released before");
}

TEST_F(ScratchHandleDeathTest, EndInALaterScopeWhenAnotherHasItsAddress) {
    expect_report(
        [] {
            std::optional<PooledAllocation> stale;
            {
                const ScratchScope scope;
                stale.emplace(Scratch::local(), 64);
            }
            const ScratchScope scope;
            const PooledAllocation another(Scratch::local(), 100);
            stale.reset();
        },
        "the handle owns the block of 64 B at .*, but its memory was released before");
}

TEST_F(ScratchHandleDeathTest, EndOnAnotherThread) {
    expect_report(
        [] {
            PooledAllocation handle(Scratch::local(), 100);
            in_new_thread([&] { handle.reset(); });
        },
        "it belongs to another thread; expected it to end on its own");
}

}  // namespace
}  // namespace tensorpool
