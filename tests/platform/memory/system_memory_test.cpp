#include <gtest/gtest.h>

#include <cstdint>

#include <tensorpool/system_memory.hpp>

namespace tensorpool {
namespace {

TEST(SystemMemory, TotalExceedsUseOfThisTest) {
    EXPECT_GT(get_total_memory(), std::size_t{16} << 20);
}

TEST(SystemMemory, TotalIsKnown) {
    EXPECT_LT(get_total_memory(), SIZE_MAX);
}

TEST(SystemMemory, AvailableIsAtMostTotal) {
    EXPECT_GT(get_available_memory(), 0U);
    EXPECT_LE(get_available_memory(), get_total_memory());
}

}  // namespace
}  // namespace tensorpool
