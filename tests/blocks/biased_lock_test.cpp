#include "blocks/biased_lock.hpp"

#include <gtest/gtest.h>

namespace tensorpool::blocks {
namespace {

constexpr auto never_waits = [] { ADD_FAILURE() << "nobody has claimed it"; };

TEST(BiasedLock, OwnerTakesItAgainAndAgain) {
    BiasedLock lock;
    for (int i = 0; i < 3; ++i) {
        lock.lock(never_waits);
        lock.unlock();
    }
}

TEST(BiasedLock, ClaimIsInVainWhileTheOwnerHasIt) {
    BiasedLock lock;
    lock.lock(never_waits);
    lock.claim();
    EXPECT_FALSE(lock.is_claimed());
    lock.end_claim();
    lock.unlock();
    lock.claim();
    EXPECT_TRUE(lock.is_claimed());
}

TEST(BiasedLock, OwnerWaitsUntilTheClaimEnds) {
    BiasedLock lock;
    lock.claim();
    int waits = 0;
    lock.lock([&] {
        EXPECT_TRUE(lock.is_claimed()) << "who waits does not hold it";
        if (++waits == 3) lock.end_claim();
    });
    EXPECT_EQ(waits, 3);
    EXPECT_FALSE(lock.is_claimed());
}

}  // namespace
}  // namespace tensorpool::blocks
