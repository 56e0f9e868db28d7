#include "contest/measurement.hpp"

#include <sys/resource.h>

#include <gtest/gtest.h>

namespace tensorpool::photos {
namespace {

TEST(Measurement, UserAndSystemTimeAreSummedAndKibibytesBecomeBytes) {
    rusage usage{};
    usage.ru_utime = {1, 500'000};
    usage.ru_stime = {2, 250'000};
    usage.ru_minflt = 7;
    usage.ru_maxrss = 3;
    const Measurement measured = to_measurement(usage);
    EXPECT_DOUBLE_EQ(measured.cpu_seconds, 3.75);
    EXPECT_EQ(measured.page_faults, 7U);
    EXPECT_EQ(measured.peak_bytes, 3072U);
}

TEST(Measurement, TheMedianIsTakenOfEachValueSeparately) {
    const Measurement of_three = median({{3, 10, 500}, {1, 30, 400}, {2, 20, 600}});
    EXPECT_DOUBLE_EQ(of_three.cpu_seconds, 2);
    EXPECT_EQ(of_three.page_faults, 20U);
    EXPECT_EQ(of_three.peak_bytes, 500U);
    EXPECT_DOUBLE_EQ(median({{4, 0, 0}, {1, 0, 0}, {3, 0, 0}, {2, 0, 0}}).cpu_seconds, 2.5);
    EXPECT_DOUBLE_EQ(median({{4, 0, 0}}).cpu_seconds, 4);
    EXPECT_DOUBLE_EQ(median({}).cpu_seconds, 0);
}

}  // namespace
}  // namespace tensorpool::photos
