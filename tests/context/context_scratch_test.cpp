// The scratch of a context.

#include <tensorpool/context.hpp>

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "arena/scratch/scratch_tools.hpp"

namespace tensorpool {
namespace {

using namespace testing;

TEST(ContextScratch, IsSharedByAllContextsOfAThread) {
    in_new_thread([] {
        Context one(mib);
        Context other(mib);
        EXPECT_EQ(&one.scratch(), &Scratch::local());
        EXPECT_EQ(&other.scratch(), &Scratch::local());
        one.scratch_alloc(1000);
        EXPECT_EQ(other.scratch_used(), 1024U);
        EXPECT_EQ(other.scratch_capacity(), 512 * kib);
        EXPECT_EQ(other.scratch_peak(), 1024U);
        in_new_thread([&] { EXPECT_EQ(one.scratch_used(), 0U); });
        other.scratch_reset();
        EXPECT_EQ(one.scratch_used(), 0U);
        EXPECT_EQ(one.used(), 0U);
    });
}

TEST(ContextScratch, IsUnaffectedByAnArenaReset) {
    in_new_thread([] {
        Context context(mib);
        void* const block = fill(context.scratch_alloc(1000), 1000, 1);
        context.alloc(1000);
        context.reset();
        EXPECT_EQ(context.scratch_used(), 1024U);
        EXPECT_TRUE(is_filled(block, 1000, 1));
        context.alloc(1000);
        context.scratch_reset();
        EXPECT_EQ(context.used(), 1024U);
    });
}

TEST(ContextScratch, ResetInsideAScopeIsRefused) {
    in_new_thread([] {
        Context context(mib);
        const ScratchScope scope;
        context.scratch_alloc(1000);
        EXPECT_THROW(context.scratch_reset(), std::logic_error);
        EXPECT_EQ(context.scratch_used(), 1024U);
    });
}

std::vector<void*> compute(Context& context) {
    std::vector<void*> blocks;
    for (const std::size_t bytes : {std::size_t{100}, 300 * kib, 400 * kib, 3 * mib}) {
        blocks.push_back(fill(context.scratch_alloc(bytes), bytes, 2));
    }
    blocks.push_back(context.scratch_alloc_matrix_pack(100, 100, 4));
    return blocks;
}

TEST(ContextScratch, RestoreRepeatsTheSameAddresses) {
    in_new_thread([] {
        Context context(mib, 128);
        void* const held = fill(context.scratch_alloc(1000), 1000, 1);
        context.save_scratch();
        const std::vector<void*> first = compute(context);
        const std::size_t used = context.scratch_used();
        const std::size_t capacity = context.scratch_capacity();
        for (int round = 0; round < 3; ++round) {
            context.restore_scratch();
            EXPECT_EQ(context.scratch_used(), 1024U);
            EXPECT_EQ(compute(context), first);
            EXPECT_EQ(context.scratch_used(), used);
            EXPECT_EQ(context.scratch_capacity(), capacity);
        }
        EXPECT_TRUE(is_filled(held, 1000, 1));
    });
}

TEST(ContextScratch, RestoreRepeatsTheSameAddressesInScopesAfterGrowth) {
    in_new_thread([] {
        Context context(mib);
        context.scratch_alloc(1000);
        context.save_scratch();
        const auto run = [&] {
            context.restore_scratch();
            std::vector<void*> blocks = compute(context);
            const ScratchScope scope("ContextScratch.restored");
            for (void* const block : compute(context)) blocks.push_back(block);
            return blocks;
        };
        run();
        const std::vector<void*> second = run();
        for (int round = 0; round < 3; ++round) EXPECT_EQ(run(), second);
    });
}

TEST(ContextScratch, RestoreUsesTheLastSave) {
    in_new_thread([] {
        Context context(mib);
        context.save_scratch();
        context.scratch_alloc(64);
        context.save_scratch();
        context.scratch_alloc(64);
        context.restore_scratch();
        EXPECT_EQ(context.scratch_used(), 64U);
        context.restore_scratch();
        EXPECT_EQ(context.scratch_used(), 64U);
    });
}

TEST(ContextScratch, RestoreWithoutASaveIsRefused) {
    in_new_thread([] {
        Context context(mib);
        context.scratch_alloc(100);
        EXPECT_THROW(context.restore_scratch(), std::logic_error);
        EXPECT_EQ(context.scratch_used(), 128U);
    });
}

TEST(ContextScratch, RestoreOnAnotherThreadIsRefused) {
    Context context(mib);
    in_new_thread([&] {
        Scratch::local().allocate(64);
        context.save_scratch();
        in_new_thread([&] {
            Scratch::local().allocate(640);
            EXPECT_THROW(context.restore_scratch(), std::logic_error);
            EXPECT_EQ(context.scratch_used(), 640U);
        });
    });
    // Later threads may have their scratch at the same address.
    for (int i = 0; i < 10; ++i) {
        in_new_thread([&] {
            Scratch::local().allocate(640);
            EXPECT_THROW(context.restore_scratch(), std::logic_error);
            EXPECT_EQ(context.scratch_used(), 640U);
        });
    }
}

TEST(ContextScratch, RestoreInAnotherScopeIsRefused) {
    in_new_thread([] {
        Context context(mib);
        context.scratch_alloc(64);
        context.save_scratch();
        {
            const ScratchScope scope;
            context.scratch_alloc(64);
            EXPECT_THROW(context.restore_scratch(), std::logic_error);
            EXPECT_EQ(context.scratch_used(), 128U);
            context.save_scratch();
        }
        EXPECT_THROW(context.restore_scratch(), std::logic_error);
        EXPECT_EQ(context.scratch_used(), 64U);
    });
}

TEST(ContextScratch, RestoreAfterAResetIsRefused) {
    in_new_thread([] {
        Context context(mib);
        context.scratch_alloc(64);
        context.save_scratch();
        context.scratch_reset();
        EXPECT_THROW(context.restore_scratch(), std::logic_error);
        EXPECT_EQ(context.scratch_used(), 0U);
    });
}

class ContextWithABuffer : public ::testing::Test {
protected:
    alignas(64) std::array<std::byte, 4096> buffer_{};
    Context context_{mib};
};

TEST_F(ContextWithABuffer, ServesScratchUntilItIsFull) {
    const std::size_t of_thread = Scratch::local().used();
    context_.use_scratch(buffer_);
    EXPECT_EQ(context_.scratch_capacity(), 4096U);
    EXPECT_EQ(context_.scratch_alloc(4000), buffer_.data());
    EXPECT_THROW(context_.scratch_alloc(100), AllocationError);
    EXPECT_EQ(context_.scratch_used(), 4032U);
    EXPECT_EQ(context_.scratch_peak(), 4032U);
    EXPECT_EQ(Scratch::local().used(), of_thread);
    context_.scratch_reset();
    EXPECT_EQ(context_.scratch_alloc_matrix_pack(16, 16, 4), buffer_.data());
}

TEST_F(ContextWithABuffer, LeavesOtherContextsOnTheThreadsScratch) {
    const Context other(mib);
    context_.use_scratch(buffer_);
    EXPECT_EQ(&other.scratch(), &Scratch::local());
    EXPECT_NE(&context_.scratch(), &Scratch::local());
}

TEST_F(ContextWithABuffer, EmptyBufferRestoresTheThreadsScratch) {
    context_.use_scratch(buffer_);
    context_.use_scratch({});
    EXPECT_EQ(&context_.scratch(), &Scratch::local());
    context_.use_scratch({});
}

TEST_F(ContextWithABuffer, CannotBeReplacedWhileInUse) {
    context_.use_scratch(buffer_);
    void* const block = fill(context_.scratch_alloc(100), 100, 1);
    try {
        context_.use_scratch({});
        ADD_FAILURE();
    } catch (const std::logic_error& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: context 'context': use_scratch: 128 B of the present buffer are "
                     "in use; call scratch_reset first");
    }
    EXPECT_EQ(context_.scratch_used(), 128U);
    EXPECT_TRUE(is_filled(block, 100, 1));
    context_.scratch_reset();
    context_.use_scratch({});
}

TEST_F(ContextWithABuffer, CannotBeReplacedInsideItsScope) {
    context_.use_scratch(buffer_);
    {
        const ScratchScope scope(context_.scratch());
        EXPECT_THROW(context_.use_scratch({}), std::logic_error);
        EXPECT_EQ(context_.scratch_alloc(100), buffer_.data());
    }
    context_.use_scratch({});
}

TEST_F(ContextWithABuffer, CannotReplaceTheScratchOfAScratchAllocationScope) {
    const std::size_t of_thread = Scratch::local().used();
    {
        const ScratchAllocationScope scope(context_);
        Context another(mib);
        const ScratchAllocationScope inner(another);
        try {
            context_.use_scratch(buffer_);
            ADD_FAILURE();
        } catch (const std::logic_error& error) {
            EXPECT_STREQ(error.what(),
                         "tensorpool: context 'context': use_scratch: inside an open "
                         "ScratchAllocationScope of this context");
        }
        EXPECT_EQ(&context_.scratch(), &Scratch::local());
        context_.allocate(100);
        EXPECT_EQ(Scratch::local().used(), of_thread + 128);
    }
    EXPECT_EQ(Scratch::local().used(), of_thread);
    context_.use_scratch(buffer_);
    {
        const ScratchAllocationScope scope(context_);
        EXPECT_THROW(context_.use_scratch({}), std::logic_error);
        EXPECT_EQ(context_.allocate(100), buffer_.data());
    }
    context_.use_scratch({});
}

TEST_F(ContextWithABuffer, SavesAndRestores) {
    context_.save_scratch();
    context_.use_scratch(buffer_);
    EXPECT_THROW(context_.restore_scratch(), std::logic_error) << "the thread's scratch was saved";
    context_.scratch_alloc(100);
    context_.save_scratch();
    for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(context_.scratch_alloc(1000), buffer_.data() + 128);
        context_.restore_scratch();
    }
    context_.scratch_reset();
    context_.use_scratch(std::span(buffer_).first(64));
    EXPECT_THROW(context_.restore_scratch(), std::logic_error);
}

TEST_F(ContextWithABuffer, SeveralContextsShareItInTurns) {
    Context other(mib);
    context_.use_scratch(buffer_);
    other.use_scratch(buffer_);
    for (int turn = 0; turn < 3; ++turn) {
        for (Context* const context : {&context_, &other}) {
            const ScratchScope scope(context->scratch(), "ContextWithABuffer.turns");
            EXPECT_EQ(context->scratch_alloc(4096), buffer_.data());
        }
    }
    EXPECT_EQ(operator_named("ContextWithABuffer.turns").calls, 6U);
}

}  // namespace
}  // namespace tensorpool
