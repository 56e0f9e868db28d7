#include "base/canary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tensorpool::base {
namespace {

struct Layout {
    std::size_t requested;
    std::size_t usable;
};

constexpr std::size_t largest = 2048;

class CanaryTest : public ::testing::TestWithParam<Layout> {
protected:
    static std::size_t damage_in(const Canary& canary, const char* block) {
        return canary.find_damage(block, GetParam().requested, GetParam().usable);
    }

    const std::size_t end_ = Canary::end(GetParam().requested, GetParam().usable);
    alignas(64) char block_[largest] = {};
};

TEST_P(CanaryTest, WritesOnlyBehindTheRequestedBytes) {
    Canary(0x1234567890abcdef).fill(block_, GetParam().requested, GetParam().usable);
    for (std::size_t at = 0; at != largest; ++at) {
        const bool is_inside = at >= GetParam().requested && at < end_;
        EXPECT_EQ(block_[at] != 0, is_inside) << at;
    }
}

TEST_P(CanaryTest, FindsTheFirstDamagedByte) {
    const Canary canary(0xfedcba0987654321);
    for (std::size_t at = GetParam().requested; at != end_; ++at) {
        canary.fill(block_, GetParam().requested, GetParam().usable);
        EXPECT_EQ(damage_in(canary, block_), GetParam().usable);
        for (std::size_t later = at; later != end_; later += 1 + later % 7) {
            block_[later] = static_cast<char>(block_[later] ^ 1);
            if (end_ - later <= later % 7) break;
        }
        EXPECT_EQ(damage_in(canary, block_), at);
    }
}

// A string that is one byte too long ends with 0.
TEST_P(CanaryTest, FindsAZeroBehindTheRequestedBytesForAnySecret) {
    for (std::uint64_t secret = 0; secret != 2000; ++secret) {
        const Canary canary(secret * 0x9E3779B97F4A7C15);
        canary.fill(block_, GetParam().requested, GetParam().usable);
        block_[GetParam().requested] = 0;
        EXPECT_EQ(damage_in(canary, block_), GetParam().requested);
    }
}

TEST_P(CanaryTest, DependsOnTheAddressAndTheSecret) {
    alignas(64) char other[largest] = {};
    const Canary canary(1);
    canary.fill(block_, GetParam().requested, GetParam().usable);
    std::copy(std::begin(block_), std::end(block_), other);
    EXPECT_NE(damage_in(canary, other), GetParam().usable);
    EXPECT_NE(damage_in(Canary(0x8000), block_), GetParam().usable);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, CanaryTest,
    ::testing::Values(Layout{1, 64}, Layout{31, 64}, Layout{32, 64}, Layout{33, 64}, Layout{40, 64},
                      Layout{47, 64}, Layout{48, 64}, Layout{49, 64}, Layout{56, 64},
                      Layout{57, 128}, Layout{64, 128}, Layout{100, 128}, Layout{1000, 1024},
                      Layout{1017, 2048}, Layout{33, 1024}),
    [](const auto& one) {
        return std::to_string(one.param.requested) + "Of" + std::to_string(one.param.usable);
    });

}  // namespace
}  // namespace tensorpool::base
