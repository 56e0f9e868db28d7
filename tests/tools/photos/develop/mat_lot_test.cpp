#include "develop/context_mat_allocator.hpp"

#include <gtest/gtest.h>

namespace tensorpool {
namespace {

TEST(MatLot, CountsLivingMats) {
    MatLot lot("picture");
    lot.add();
    lot.add();
    lot.remove();
    EXPECT_EQ(lot.living(), 1U);
    lot.remove();
}

TEST(MatLotDeathTest, ALeftMatStopsTheProgramAndNamesTheLot) {
    const auto leave_two = [] {
        MatLot lot("denoise");
        lot.add();
        lot.add();
    };
    EXPECT_DEATH(leave_two(),
                 "tensorpool: the memory of 2 cv::Mat ends with 'denoise'; expected none");
}

}  // namespace
}  // namespace tensorpool
