#include "doctor/doctor.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command {
namespace {

TEST(FirstTouch, IsMeasuredForEachPageSize) {
    EXPECT_GT(measure_first_touch_ns(0), 0);
    for (std::uint64_t kib = 16; kib <= 2048; kib *= 2)
        EXPECT_GT(measure_first_touch_ns(kib * 1024), 0) << kib;
}

}  // namespace
}  // namespace tensorpool::command
