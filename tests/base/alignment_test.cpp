#include "base/alignment.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace tensorpool::base {
namespace {

constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();

TEST(Alignment, AlignUpRoundsToNextMultipleAndKeepsMultiples) {
    EXPECT_EQ(align_up(0, 64), 0U);
    EXPECT_EQ(align_up(1, 64), 64U);
    EXPECT_EQ(align_up(64, 64), 64U);
    EXPECT_EQ(align_up(65, 64), 128U);
    EXPECT_EQ(align_up(77, 1), 77U);
}

TEST(Alignment, AlignDownRoundsToPreviousMultipleAndKeepsMultiples) {
    EXPECT_EQ(align_down(0, 64), 0U);
    EXPECT_EQ(align_down(63, 64), 0U);
    EXPECT_EQ(align_down(64, 64), 64U);
    EXPECT_EQ(align_down(127, 64), 64U);
    EXPECT_EQ(align_down(largest, std::size_t{1} << 63), std::size_t{1} << 63);
}

TEST(Alignment, AlignUpAndAlignDownEncloseEveryValue) {
    for (std::size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        for (std::size_t value = 0; value < 9000; value += 7) {
            const std::size_t up = align_up(value, alignment);
            const std::size_t down = align_down(value, alignment);
            ASSERT_TRUE(is_aligned(up, alignment) && is_aligned(down, alignment));
            ASSERT_TRUE(down <= value && value <= up);
            ASSERT_EQ(up - down, is_aligned(value, alignment) ? 0U : alignment);
        }
    }
}

TEST(Alignment, IsAlignedChecksAddressOfPointer) {
    alignas(64) const char bytes[128] = {};
    EXPECT_TRUE(is_aligned(bytes, 64));
    EXPECT_TRUE(is_aligned(bytes + 64, 64));
    EXPECT_FALSE(is_aligned(bytes + 8, 64));
    EXPECT_TRUE(is_aligned(bytes + 8, 8));
}

TEST(Alignment, CeilDivideRoundsUpAndDoesNotOverflow) {
    EXPECT_EQ(ceil_divide(0, 7), 0U);
    EXPECT_EQ(ceil_divide(1, 7), 1U);
    EXPECT_EQ(ceil_divide(7, 7), 1U);
    EXPECT_EQ(ceil_divide(8, 7), 2U);
    EXPECT_EQ(ceil_divide(largest, 2), (largest >> 1) + 1);
    EXPECT_EQ(ceil_divide(largest, 1), largest);
}

}  // namespace
}  // namespace tensorpool::base
