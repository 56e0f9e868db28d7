#include "plan/report.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::planning {
namespace {

std::vector<std::string> labels_of(const std::vector<Mark>& marks) {
    std::vector<std::string> labels;
    for (const Mark& mark : marks) labels.push_back(mark.label);
    return labels;
}

TEST(Scale, MapsValuesToPixels) {
    const Scale scale = {10, 20, 100, 0};
    EXPECT_EQ(scale(10), 100);
    EXPECT_EQ(scale(15), 50);
    EXPECT_EQ(scale(20), 0);
}

using Labels = std::vector<std::string>;

TEST(TimeMarks, AreRound) {
    EXPECT_EQ(labels_of(time_marks(0, 100, 5)), (Labels{"0", "20", "40", "60", "80", "100"}));
    EXPECT_EQ(labels_of(time_marks(-7, 9, 4)), (Labels{"-5", "0", "5"}));
    EXPECT_EQ(labels_of(time_marks(3, 5, 10)), (Labels{"3", "4", "5"})) << "whole numbers";
}

TEST(TimeMarks, AreLimitedBeyondThePrecisionOfDoubles) {
    EXPECT_LE(time_marks(0x1p62, 0x1p62 + 1024, 10).size(), 40u);
    EXPECT_LE(time_marks(-0x1p62, 0x1p62, 10).size(), 40u);
}

TEST(SizeMarks, AreRoundAndInOneUnit) {
    EXPECT_EQ(labels_of(size_marks(1.0 * (1 << 20), 8)),
              (Labels{"0", "200 KiB", "400 KiB", "600 KiB", "800 KiB", "1000 KiB"}));
    EXPECT_EQ(labels_of(size_marks(3.0 * (1 << 20), 4)), (Labels{"0", "1 MiB", "2 MiB", "3 MiB"}));
    EXPECT_EQ(labels_of(size_marks(1, 8)), (Labels{"0", "1 B"}));
}

}  // namespace
}  // namespace tensorpool::command::planning
