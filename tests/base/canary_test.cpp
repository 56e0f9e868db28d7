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

constexpr Layout layouts[] = {{1, 64},   {31, 64},   {32, 64},     {33, 64},     {40, 64},
                              {47, 64},  {48, 64},   {49, 64},     {56, 64},     {57, 128},
                              {64, 128}, {100, 128}, {1000, 1024}, {1017, 2048}, {33, 1024}};

class CanaryTest : public ::testing::Test {
protected:
    /// Runs `test` with a block of zeros for each layout.
    template <class Test>
    void for_each_layout(Test test) {
        for (const Layout& layout : layouts) {
            SCOPED_TRACE(std::to_string(layout.requested) + " of " + std::to_string(layout.usable));
            std::fill(std::begin(block_), std::end(block_), char(0));
            test(layout);
        }
    }
    static std::size_t damage_in(const Canary& canary, const char* block, const Layout& layout) {
        return canary.find_damage(block, layout.requested, layout.usable);
    }
    static std::size_t end_of(const Layout& layout) {
        return Canary::end(layout.requested, layout.usable);
    }

    alignas(64) char block_[largest] = {};
};

TEST_F(CanaryTest, WritesOnlyBehindTheRequestedBytes) {
    for_each_layout([&](const Layout& layout) {
        Canary(0x1234567890abcdef).fill(block_, layout.requested, layout.usable);
        for (std::size_t at = 0; at != largest; ++at) {
            const bool is_inside = at >= layout.requested && at < end_of(layout);
            EXPECT_EQ(block_[at] != 0, is_inside) << at;
        }
    });
}

TEST_F(CanaryTest, FindsTheFirstDamagedByte) {
    for_each_layout([&](const Layout& layout) {
        const Canary canary(0xfedcba0987654321);
        for (std::size_t at = layout.requested; at != end_of(layout); ++at) {
            canary.fill(block_, layout.requested, layout.usable);
            EXPECT_EQ(damage_in(canary, block_, layout), layout.usable);
            for (std::size_t later = at; later != end_of(layout); later += 1 + later % 7) {
                block_[later] = static_cast<char>(block_[later] ^ 1);
                if (end_of(layout) - later <= later % 7) break;
            }
            EXPECT_EQ(damage_in(canary, block_, layout), at);
        }
    });
}

// A string that is one byte too long ends with 0.
TEST_F(CanaryTest, FindsAZeroBehindTheRequestedBytesForAnySecret) {
    for_each_layout([&](const Layout& layout) {
        for (std::uint64_t secret = 0; secret != 2000; ++secret) {
            const Canary canary(secret * 0x9E3779B97F4A7C15);
            canary.fill(block_, layout.requested, layout.usable);
            block_[layout.requested] = 0;
            EXPECT_EQ(damage_in(canary, block_, layout), layout.requested);
        }
    });
}

TEST_F(CanaryTest, DependsOnTheAddressAndTheSecret) {
    for_each_layout([&](const Layout& layout) {
        alignas(64) char other[largest] = {};
        const Canary canary(1);
        canary.fill(block_, layout.requested, layout.usable);
        std::copy(std::begin(block_), std::end(block_), other);
        EXPECT_NE(damage_in(canary, other, layout), layout.usable);
        EXPECT_NE(damage_in(Canary(0x8000), block_, layout), layout.usable);
    });
}

}  // namespace
}  // namespace tensorpool::base
