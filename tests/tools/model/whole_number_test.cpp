#include "common/units.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace tensorpool::command::model {
namespace {

TEST(WholeNumber, HasCommasBetweenThousands) {
    EXPECT_EQ(with_commas(0), "0");
    EXPECT_EQ(with_commas(999), "999");
    EXPECT_EQ(with_commas(1000), "1,000");
    EXPECT_EQ(with_commas(151936), "151,936");
    EXPECT_EQ(with_commas(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
}

TEST(Counted, IsOneOrMany) {
    EXPECT_EQ(counted(1, "layer"), "1 layer");
    EXPECT_EQ(counted(0, "layer"), "0 layers");
    EXPECT_EQ(counted(1024, "layer"), "1,024 layers");
}

}  // namespace
}  // namespace tensorpool::command::model
