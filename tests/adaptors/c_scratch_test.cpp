#include <tensorpool/scratch.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include <tensorpool/tensorpool_arena.h>

namespace {

TEST(CScratch, IsThatOfTheCppInterface) {
    EXPECT_EQ(tensorpool_scratch_local(),
              reinterpret_cast<tensorpool_scratch*>(&tensorpool::Scratch::local()));
}

TEST(CScratch, OverABufferReportsWhatItLacks) {
    alignas(128) std::byte buffer[1024];
    tensorpool_scratch* const scratch = tensorpool_scratch_create_over(buffer, sizeof buffer);
    ASSERT_NE(scratch, nullptr);
    EXPECT_NE(tensorpool_scratch_allocate_aligned(scratch, 500, 128), nullptr);
    EXPECT_EQ(tensorpool_scratch_allocate(scratch, 4096), nullptr);
    EXPECT_STRNE(tensorpool_last_error(), "");
    EXPECT_EQ(tensorpool_scratch_used(scratch), 512U);
    EXPECT_EQ(tensorpool_scratch_reset(scratch), tensorpool_ok);
    EXPECT_EQ(tensorpool_scratch_peak(scratch), 512U);
    tensorpool_scratch_destroy(scratch);
    EXPECT_EQ(tensorpool_scratch_create_over(nullptr, 1), nullptr);
}

TEST(CScratch, NullIsAFailureAndEndsNothing) {
    tensorpool_scratch_scope scope;
    EXPECT_EQ(tensorpool_scratch_begin(nullptr, &scope, nullptr), tensorpool_invalid_argument);
    EXPECT_EQ(tensorpool_scratch_begin(tensorpool_scratch_local(), nullptr, nullptr),
              tensorpool_invalid_argument);
    EXPECT_EQ(tensorpool_scratch_allocate(nullptr, 1), nullptr);
    EXPECT_EQ(
        tensorpool_scratch_allocate_padded_matrix(tensorpool_scratch_local(), 1, 1, 1, nullptr),
        nullptr);
    EXPECT_EQ(tensorpool_scratch_allocate_matrix_pack(tensorpool_scratch_local(), SIZE_MAX, 2, 1),
              nullptr);
    tensorpool_scratch_end(nullptr);
    tensorpool_scratch_destroy(nullptr);
}

TEST(CScratch, ReservesAndReportsStatistics) {
    alignas(64) std::byte buffer[1024];
    tensorpool_scratch* const scratch = tensorpool_scratch_create_over(buffer, sizeof buffer);
    EXPECT_EQ(tensorpool_scratch_reserve(scratch, 512), tensorpool_ok);
    EXPECT_EQ(tensorpool_scratch_reserve(scratch, 4096), tensorpool_out_of_memory);
    tensorpool_arena_statistics statistics;
    statistics.struct_bytes = sizeof statistics;
    EXPECT_EQ(tensorpool_scratch_read_statistics(scratch, &statistics), tensorpool_ok);
    EXPECT_EQ(statistics.capacity_bytes, 1024U);
    statistics.struct_bytes = 1;
    EXPECT_EQ(tensorpool_scratch_read_statistics(scratch, &statistics),
              tensorpool_invalid_argument);
    tensorpool_scratch_destroy(scratch);
}

}  // namespace
