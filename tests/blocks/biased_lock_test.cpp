#include "blocks/kept_large_blocks.hpp"

#include <gtest/gtest.h>

namespace tensorpool::blocks {
namespace {

constexpr auto never_waits = [] { ADD_FAILURE() << "the lock is not claimed"; };

TEST(BiasedLock, OwnerLocksRepeatedly) {
    BiasedLock lock;
    for (int i = 0; i < 3; ++i) {
        lock.lock(never_waits);
        EXPECT_FALSE(lock.is_claimed()) << "the owner has the lock";
        lock.unlock();
        EXPECT_TRUE(lock.is_claimed()) << "a claim would be effective";
    }
}

TEST(BiasedLock, ClaimFailsWhileTheOwnerHoldsTheLock) {
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
        EXPECT_TRUE(lock.is_claimed()) << "a waiting owner does not hold the lock";
        if (++waits == 3) lock.end_claim();
    });
    EXPECT_EQ(waits, 3);
    EXPECT_FALSE(lock.is_claimed());
}

}  // namespace
}  // namespace tensorpool::blocks
