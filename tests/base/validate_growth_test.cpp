#include "base/checks.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <string>

namespace tensorpool {
namespace {

/// Returns the message of the exception; "" if the policy is accepted.
std::string error_of(const GrowthPolicy& growth) {
    try {
        validate(growth, "arena 'mine'");
        return "";
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

TEST(ValidateGrowth, AcceptsPredefinedPolicies) {
    for (const GrowthPolicy& growth : {GrowthPolicy{}, GrowthPolicy::conservative(),
                                       GrowthPolicy::doubling(), GrowthPolicy::aggressive()}) {
        EXPECT_EQ(error_of(growth), "");
    }
}

TEST(ValidateGrowth, FactorIsFrom0To1024) {
    for (const double taken : {0.0, 1.0, 1024.0}) EXPECT_EQ(error_of({.factor = taken}), "");
    for (const double refused : {-0.1, 1024.5, not_a_number}) {
        EXPECT_EQ(error_of({.factor = refused}), "tensorpool: arena 'mine': growth.factor is " +
                                                     std::to_string(refused) +
                                                     "; expected 0 to 1024");
    }
}

TEST(ValidateGrowth, FractionIsFrom0To1) {
    for (const double taken : {0.0, 0.75, 1.0}) EXPECT_EQ(error_of({.fraction = taken}), "");
    for (const double refused : {-0.1, 1.1, not_a_number}) {
        EXPECT_EQ(error_of({.fraction = refused}), "tensorpool: arena 'mine': growth.fraction is " +
                                                       std::to_string(refused) +
                                                       "; expected 0 to 1");
    }
}

}  // namespace
}  // namespace tensorpool
