// Matrices in a scratch.

#include <tensorpool/scratch.hpp>

#include <gtest/gtest.h>

#include <array>
#include <span>

#include "arena/scratch/scratch_tools.hpp"

namespace tensorpool {
namespace {

using namespace testing;

constexpr std::size_t half = std::size_t{1} << 32;

TEST(MatrixPack, TakesExactlyTheBytesOfItsElements) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        void* const pack = scratch.allocate_matrix_pack(16, 100, 4);
        EXPECT_TRUE(is_aligned(pack, 64));
        EXPECT_EQ(scratch.used(), 6400U);
        scratch.allocate_matrix_pack(3, 5, 2);
        EXPECT_EQ(scratch.used(), 6464U);
        EXPECT_TRUE(is_aligned(scratch.allocate_matrix_pack(3, 5, 2, 1024), 1024));
    });
}

TEST(MatrixPack, WithoutElementsIsNullptr) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        EXPECT_EQ(scratch.allocate_matrix_pack(0, 100, 4), nullptr);
        EXPECT_EQ(scratch.allocate_matrix_pack(100, 0, 4), nullptr);
        EXPECT_EQ(scratch.allocate_matrix_pack(100, 100, 0), nullptr);
        EXPECT_EQ(scratch.allocate_matrix_pack(0, SIZE_MAX, 4), nullptr);
        EXPECT_EQ(scratch.used(), 0U);
    });
}

TEST(MatrixPack, ProductThatOverflowsIsRefused) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        struct Shape {
            std::size_t rows, cols, element_bytes;
        };
        // Some products wrap around to 0 or to a small number.
        for (const Shape& shape :
             {Shape{half, half, 4}, Shape{half, half / 4, 4}, Shape{half, half / 4 + 1, 4},
              Shape{SIZE_MAX, SIZE_MAX, 1}, Shape{SIZE_MAX, 1, 2}, Shape{1, SIZE_MAX / 2 + 1, 2}}) {
            EXPECT_THROW(scratch.allocate_matrix_pack(shape.rows, shape.cols, shape.element_bytes),
                         AllocationError);
            EXPECT_THROW(
                scratch.allocate_padded_matrix(shape.rows, shape.cols, shape.element_bytes),
                AllocationError);
        }
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_EQ(scratch.statistics().refusals, 12U);
    });
}

TEST(PaddedMatrix, RowsAreCacheLinesSpreadOverTheSets) {
    alignas(64) static std::array<std::byte, 64 * kib> buffer;
    for (std::size_t cols = 1; cols <= 8200; cols += cols < 4000 || cols > 4200 ? 7 : 1) {
        for (const std::size_t element_bytes : {std::size_t{1}, std::size_t{4}}) {
            Scratch scratch = Scratch::over(buffer);
            const PaddedMatrix matrix = scratch.allocate_padded_matrix(1, cols, element_bytes);
            ASSERT_TRUE(is_aligned(matrix.data, 64));
            ASSERT_GE(matrix.row_bytes, cols * element_bytes);
            ASSERT_LE(matrix.row_bytes, cols * element_bytes + 127);
            ASSERT_EQ(matrix.row_bytes % 64, 0U);
            ASSERT_NE(matrix.row_bytes % 512, 0U) << cols << " of " << element_bytes;
            ASSERT_EQ(scratch.used(), matrix.row_bytes);
        }
    }
}

TEST(PaddedMatrix, OnlyRowsThatShareFewSetsArePadded) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        EXPECT_EQ(scratch.allocate_padded_matrix(4, 1024, 4).row_bytes, 4160U);
        EXPECT_EQ(scratch.allocate_padded_matrix(4, 1010, 4).row_bytes, 4160U);
        EXPECT_EQ(scratch.allocate_padded_matrix(4, 1008, 4).row_bytes, 4032U);
        EXPECT_EQ(scratch.allocate_padded_matrix(4, 512, 4).row_bytes, 2112U);
        EXPECT_EQ(scratch.allocate_padded_matrix(4, 112, 4).row_bytes, 448U);
        EXPECT_EQ(scratch.allocate_padded_matrix(4, 1025, 4).row_bytes, 4160U);
        EXPECT_EQ(scratch.used(), 4U * (4160 + 4160 + 4032 + 2112 + 448 + 4160));
    });
}

TEST(PaddedMatrix, RowsDoNotOverlap) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const PaddedMatrix matrix = scratch.allocate_padded_matrix(300, 1024, 4);
        auto* const data = static_cast<std::byte*>(matrix.data);
        void* const behind = fill(scratch.allocate(64), 64, 1000);
        for (std::size_t row = 0; row < 300; ++row) fill(data + row * matrix.row_bytes, 4096, row);
        for (std::size_t row = 0; row < 300; ++row) {
            EXPECT_TRUE(is_filled(data + row * matrix.row_bytes, 4096, row));
        }
        EXPECT_TRUE(is_filled(behind, 64, 1000));
    });
}

TEST(PaddedMatrix, WithoutElementsHasNoDataAndNoRows) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        for (const PaddedMatrix& matrix :
             {scratch.allocate_padded_matrix(0, 10, 4), scratch.allocate_padded_matrix(10, 0, 4),
              scratch.allocate_padded_matrix(10, 10, 0)}) {
            EXPECT_EQ(matrix.data, nullptr);
            EXPECT_EQ(matrix.row_bytes, 0U);
        }
        EXPECT_EQ(scratch.used(), 0U);
    });
}

TEST(PaddedMatrix, PaddingThatOverflowsIsRefused) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        EXPECT_THROW(scratch.allocate_padded_matrix(1, SIZE_MAX, 1), AllocationError);
        EXPECT_THROW(scratch.allocate_padded_matrix(1, SIZE_MAX - 63, 1), AllocationError);
        EXPECT_THROW(scratch.allocate_padded_matrix(1, SIZE_MAX - 4095, 1), AllocationError);
        // The product overflows only with the padding.
        EXPECT_THROW(scratch.allocate_padded_matrix(SIZE_MAX / 4096, 4096, 1), AllocationError);
        EXPECT_THROW(scratch.allocate_padded_matrix(2 * mib, 4096, 1), AllocationError);
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_EQ(scratch.statistics().refusals, 5U);
    });
}

}  // namespace
}  // namespace tensorpool
