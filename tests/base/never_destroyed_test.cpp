#include "base/never_destroyed.hpp"

#include <gtest/gtest.h>

namespace tensorpool::base {
namespace {

int destroyed = 0;

struct Guest {
    constexpr Guest() noexcept = default;
    ~Guest() { ++destroyed; }
    int value = 42;
};

constinit NeverDestroyed<Guest> constant_initialized;

TEST(NeverDestroyed, IsConstantInitialized) {
    EXPECT_EQ(constant_initialized->value, 42);
    EXPECT_EQ(constant_initialized.get().value, 42);
}

TEST(NeverDestroyed, DoesNotDestroyItsObject) {
    destroyed = 0;
    {
        NeverDestroyed<Guest> holder;
        holder->value = 7;
        EXPECT_EQ(holder.get().value, 7);
    }
    EXPECT_EQ(destroyed, 0);
}

}  // namespace
}  // namespace tensorpool::base
