#include <tensorpool/context.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>

#include <tensorpool/tensorpool_arena.h>

namespace {

struct Destroyer {
    void operator()(tensorpool_context* context) const { tensorpool_context_destroy(context); }
};
using OwnedContext = std::unique_ptr<tensorpool_context, Destroyer>;

TEST(CContext, OverABufferUsesItAlone) {
    alignas(64) std::byte buffer[2048];
    const OwnedContext context(tensorpool_context_create_over(buffer, sizeof buffer, 64));
    ASSERT_NE(context, nullptr);
    EXPECT_EQ(tensorpool_context_alloc(context.get(), 2048), buffer);
    EXPECT_EQ(tensorpool_context_alloc(context.get(), 1), nullptr);
    EXPECT_EQ(tensorpool_context_reset(context.get()), tensorpool_ok);
    EXPECT_EQ(tensorpool_context_mark(context.get()), 0U);
    EXPECT_EQ(tensorpool_context_create_over(buffer, sizeof buffer, 3), nullptr);
}

TEST(CContext, MeasuresItsArena) {
    tensorpool_arena_options options;
    ASSERT_EQ(tensorpool_arena_options_init(&options, sizeof options), tensorpool_ok);
    options.alignment = 128;
    const OwnedContext context(tensorpool_context_create_measuring(&options));
    EXPECT_NE(tensorpool_context_alloc(context.get(), 129), nullptr);
    EXPECT_EQ(tensorpool_arena_peak(tensorpool_context_arena(context.get())), 256U);
}

TEST(CContext, SavesAndRestoresScratchInABuffer) {
    alignas(64) std::byte buffer[1024];
    const OwnedContext context(tensorpool_context_create(nullptr));
    ASSERT_EQ(tensorpool_context_use_scratch(context.get(), buffer, sizeof buffer), tensorpool_ok);
    EXPECT_EQ(tensorpool_context_restore_scratch(context.get()), tensorpool_other_failure);
    EXPECT_EQ(tensorpool_context_scratch_alloc(context.get(), 64), buffer);
    EXPECT_EQ(tensorpool_context_save_scratch(context.get()), tensorpool_ok);
    EXPECT_EQ(tensorpool_context_scratch_alloc(context.get(), 64), buffer + 64);
    EXPECT_EQ(tensorpool_context_restore_scratch(context.get()), tensorpool_ok);
    EXPECT_EQ(tensorpool_scratch_used(tensorpool_context_scratch(context.get())), 64U);
    EXPECT_EQ(tensorpool_context_use_scratch(context.get(), nullptr, 0), tensorpool_other_failure)
        << "bytes of the buffer are in use";
    EXPECT_EQ(tensorpool_context_scratch_reset(context.get()), tensorpool_ok);
    EXPECT_EQ(tensorpool_context_use_scratch(context.get(), nullptr, 0), tensorpool_ok);
}

TEST(CContext, TakesSmallBlocksFromItsPoolAndLargeOnesFromItsArena) {
    tensorpool_pool* const pool = tensorpool_create(nullptr);
    ASSERT_NE(pool, nullptr);
    {
        const OwnedContext context(tensorpool_context_create_with_pool(nullptr, pool, 1000));
        ASSERT_NE(context, nullptr);
        void* const small = tensorpool_context_allocate(context.get(), 1000);
        EXPECT_EQ(tensorpool_owns(pool, small), 1);
        EXPECT_EQ(tensorpool_context_mark(context.get()), 0U);
        void* const large = tensorpool_context_allocate(context.get(), 1001);
        EXPECT_EQ(tensorpool_owns(pool, large), 0);
        EXPECT_EQ(tensorpool_context_mark(context.get()), 1024U);
        tensorpool_context_deallocate(context.get(), small, 1000);
        EXPECT_EQ(tensorpool_owns(pool, small), 0);
        tensorpool_context_deallocate(context.get(), large, 1001);
        EXPECT_EQ(tensorpool_context_mark(context.get()), 1024U) << "it lives until a release";
        std::string text(100'000, ' ');
        EXPECT_GT(tensorpool_context_report_json(context.get(), text.data(), text.size()), 0);
        EXPECT_NE(text.find("\"scratch\""), std::string::npos);
    }
    tensorpool_destroy(pool);
}

TEST(CContext, NullIsAFailure) {
    EXPECT_EQ(tensorpool_context_allocate(nullptr, 1), nullptr);
    EXPECT_LT(tensorpool_context_report_json(nullptr, nullptr, 0), 0);
    tensorpool_context_deallocate(nullptr, nullptr, 1);
    EXPECT_EQ(tensorpool_context_alloc(nullptr, 1), nullptr);
    EXPECT_EQ(tensorpool_context_arena(nullptr), nullptr);
    EXPECT_EQ(tensorpool_context_scratch(nullptr), nullptr);
    EXPECT_EQ(tensorpool_context_reset(nullptr), tensorpool_invalid_argument);
    tensorpool_context_destroy(nullptr);
}

}  // namespace
