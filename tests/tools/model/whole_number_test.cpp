#include "model/whole_number.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace tensorpool::command::model {
namespace {

TEST(WholeNumber, HasCommasBetweenThousands) {
    EXPECT_EQ(whole_number(0), "0");
    EXPECT_EQ(whole_number(999), "999");
    EXPECT_EQ(whole_number(1000), "1,000");
    EXPECT_EQ(whole_number(151936), "151,936");
    EXPECT_EQ(whole_number(-1234567), "-1,234,567");
    EXPECT_EQ(whole_number(-999), "-999");
    EXPECT_EQ(whole_number(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
    EXPECT_EQ(whole_number(std::numeric_limits<std::uint64_t>::max()),
              "18,446,744,073,709,551,615");
}

TEST(Counted, IsOneOrMany) {
    EXPECT_EQ(counted(1, "layer"), "1 layer");
    EXPECT_EQ(counted(0, "layer"), "0 layers");
    EXPECT_EQ(counted(1024, "layer"), "1,024 layers");
}

}  // namespace
}  // namespace tensorpool::command::model
