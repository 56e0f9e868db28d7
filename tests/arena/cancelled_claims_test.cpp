#include "arena/release_history.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pages/random.hpp"

namespace tensorpool::arena {
namespace {

/// The definition, implemented literally: the offset from which each generation was cancelled.
class Reference {
public:
    void cancel_from(std::size_t from) { from_.push_back(from); }
    std::size_t ended() const { return from_.size(); }
    bool contains(std::size_t generation, std::size_t begin) const {
        return generation < from_.size() && begin >= from_[generation];
    }

private:
    std::vector<std::size_t> from_;
};

std::uint16_t low(std::size_t generation) {
    return static_cast<std::uint16_t>(generation);
}

TEST(CancelledClaims, StartsWithNone) {
    const CancelledClaims claims;
    EXPECT_EQ(claims.generation(), 0U);
    EXPECT_FALSE(claims.contains(0, 0));
    EXPECT_FALSE(claims.contains(0, SIZE_MAX));
}

TEST(CancelledClaims, EndsTheGenerationFromTheOffsetUp) {
    CancelledClaims claims;
    claims.cancel_from(100);
    EXPECT_EQ(claims.generation(), 1U);
    EXPECT_TRUE(claims.contains(0, 100));
    EXPECT_TRUE(claims.contains(0, 5000));
    EXPECT_FALSE(claims.contains(0, 99));
    EXPECT_FALSE(claims.contains(1, 100)) << "the current generation";
}

TEST(CancelledClaims, EachGenerationHasItsOwnOffset) {
    CancelledClaims claims;
    for (const std::size_t from : {100, 100, 200, 150}) claims.cancel_from(from);
    EXPECT_TRUE(claims.contains(0, 100));
    EXPECT_TRUE(claims.contains(1, 100));
    EXPECT_FALSE(claims.contains(2, 199));
    EXPECT_TRUE(claims.contains(2, 200));
    EXPECT_FALSE(claims.contains(3, 149));
    EXPECT_TRUE(claims.contains(3, 150));
}

// The last 64 offsets are kept. Results for a run of one offset stay exact, however long it is.
TEST(CancelledClaims, AgreesWithItsDefinitionInRunsOfOneOffset) {
    testing::Random random(1);
    for (int round = 0; round < 50; ++round) {
        CancelledClaims claims;
        Reference reference;
        std::size_t from = 0;
        std::vector<std::size_t> first_of_run;
        for (int i = 0; i < 2000; ++i) {
            if (i == 0 || random.one_in(30)) {
                from += 1 + random.below(1000);
                first_of_run.push_back(reference.ended());
            }
            claims.cancel_from(from);
            reference.cancel_from(from);
            ASSERT_EQ(claims.generation(), low(reference.ended()));
            const std::size_t oldest =
                first_of_run.size() > 64 ? first_of_run[first_of_run.size() - 64] : 0;
            for (int probe = 0; probe < 4; ++probe) {
                const std::size_t generation =
                    oldest + random.below(reference.ended() + 1 - oldest);
                const std::size_t begin = random.below(from + 100);
                ASSERT_EQ(claims.contains(low(generation), begin),
                          reference.contains(generation, begin))
                    << generation << " of " << reference.ended() << " at " << begin;
            }
        }
    }
}

TEST(CancelledClaims, KeepsExactlyTheLast64Offsets) {
    CancelledClaims claims;
    for (std::size_t i = 0; i < 65; ++i) claims.cancel_from(1000 + i);
    EXPECT_TRUE(claims.contains(0, 0)) << "forgotten, so it counts as cancelled at every offset";
    for (std::size_t i = 1; i < 65; ++i) {
        EXPECT_FALSE(claims.contains(low(i), 1000 + i - 1)) << i;
        EXPECT_TRUE(claims.contains(low(i), 1000 + i)) << i;
    }
}

TEST(CancelledClaims, ForgottenGenerationsCountAsCancelled) {
    CancelledClaims claims;
    Reference reference;
    for (std::size_t i = 0; i < 1000; ++i) {
        claims.cancel_from(i * 10);
        reference.cancel_from(i * 10);
    }
    for (std::size_t generation = 0; generation < 1000 - 64; ++generation) {
        ASSERT_TRUE(claims.contains(low(generation), 0));
    }
}

TEST(CancelledClaims, GenerationsWrapAroundAndTheLast65535AreDistinct) {
    CancelledClaims claims;
    Reference reference;
    testing::Random random(2);
    std::size_t from = 1000;
    // Few offsets, so that none is forgotten, in far more generations than the low bits count.
    for (std::size_t i = 0; i < 200'000; ++i) {
        if (i % 5000 == 0) from += 64;
        claims.cancel_from(from);
        reference.cancel_from(from);
        if (i % 97 != 0) continue;
        const std::size_t reach = std::min<std::size_t>(reference.ended(), 65'535);
        for (const std::size_t since :
             {std::size_t{0}, std::size_t{1}, reach, std::size_t{random.below(reach + 1)}}) {
            const std::size_t generation = reference.ended() - since;
            const std::size_t begin = 1000 + random.below(from - 900);
            ASSERT_EQ(claims.contains(low(generation), begin),
                      reference.contains(generation, begin))
                << since << " before " << reference.ended() << " at " << begin;
        }
    }
    EXPECT_EQ(claims.generation(), low(200'000));
}

// After a release, offsets decrease.
TEST(CancelledClaims, OffsetsMayDecrease) {
    CancelledClaims claims;
    for (const std::size_t from : {1000, 10, 500, 10}) claims.cancel_from(from);
    EXPECT_FALSE(claims.contains(0, 999));
    EXPECT_TRUE(claims.contains(1, 10));
    EXPECT_FALSE(claims.contains(2, 499));
    EXPECT_TRUE(claims.contains(3, 10));
    EXPECT_FALSE(claims.contains(3, 9));
}

}  // namespace
}  // namespace tensorpool::arena
