#include "pool/pool.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>

#include <tensorpool/memory_pool.hpp>

#include "platform/platform.hpp"

namespace tensorpool {
namespace {

/// The message of the exception for invalid options; "" for valid ones.
std::string refusal_of(const PoolOptions& options) {
    try {
        validate(options);
        return "";
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
}

PoolOptions with_factor(double factor) {
    PoolOptions options;
    options.growth.factor = factor;
    return options;
}

PoolOptions with_fraction(double fraction) {
    PoolOptions options;
    options.growth.fraction = fraction;
    return options;
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

TEST(ValidateOptions, DefaultsAreValid) {
    EXPECT_EQ(refusal_of(PoolOptions{}), "");
}

TEST(ValidateOptions, InitialCapacityUpToTheLimitIsValid) {
    EXPECT_EQ(refusal_of({.initial_capacity = 4096, .max_capacity = 4096}), "");
    EXPECT_EQ(refusal_of({.initial_capacity = 4096, .max_capacity = 0}), "");
    EXPECT_EQ(
        refusal_of({.name = "mine", .initial_capacity = 4097, .max_capacity = 4096}),
        "tensorpool: pool 'mine': initial_capacity is 4097 B, more than max_capacity, 4096 B");
}

TEST(ValidateOptions, MaxAllocationMustBeAboveZero) {
    EXPECT_EQ(refusal_of({.max_allocation = 1}), "");
    EXPECT_EQ(refusal_of({.max_allocation = std::numeric_limits<std::size_t>::max()}), "");
    EXPECT_EQ(refusal_of({.name = "mine", .max_allocation = 0}),
              "tensorpool: pool 'mine': max_allocation is 0 B; expected at least 1 B");
}

TEST(ValidateOptions, GrowthMustNotBeNegative) {
    for (const double taken : {0.0, 1.0, 1024.0}) EXPECT_EQ(refusal_of(with_factor(taken)), "");
    for (const double refused : {-0.1, 1024.5, not_a_number}) {
        EXPECT_EQ(refusal_of(with_factor(refused)), "tensorpool: pool 'pool': growth.factor is " +
                                                        std::to_string(refused) +
                                                        "; expected 0 to 1024");
    }
    for (const double taken : {0.0, 0.75, 1.0}) EXPECT_EQ(refusal_of(with_fraction(taken)), "");
    for (const double refused : {-0.1, 1.1, not_a_number}) {
        EXPECT_EQ(refusal_of(with_fraction(refused)),
                  "tensorpool: pool 'pool': growth.fraction is " + std::to_string(refused) +
                      "; expected 0 to 1");
    }
}

TEST(ValidateOptions, PreferredNodeMustExist) {
    PoolOptions options;
    options.numa = {.placement = NumaPolicy::Placement::prefer, .node = 0};
    EXPECT_EQ(refusal_of(options), "");
    for (const unsigned refused : {platform::numa_node_count(), 100'000U}) {
        options.numa.node = refused;
        const std::string expected =
            "numa.node is " + std::to_string(refused) + "; expected less than ";
        EXPECT_NE(refusal_of(options).find(expected), std::string::npos) << refused;
    }
    options.numa.placement = NumaPolicy::Placement::interleave;
    EXPECT_EQ(refusal_of(options), "");
}

TEST(ValidateOptions, PoolRejectsInvalidOptions) {
    EXPECT_THROW(MemoryPool(PoolOptions{.max_allocation = 0}), std::invalid_argument);
    EXPECT_THROW(MemoryPool(with_factor(-1)), std::invalid_argument);
}

TEST(ValidateOptions, GuardShareMustBeFrom0To1) {
    PoolOptions options;
    for (const double taken : {0.0, 0.5, 1.0}) {
        options.guard_share = taken;
        EXPECT_EQ(refusal_of(options), "");
    }
    for (const double refused : {-0.1, 1.1, not_a_number}) {
        options.guard_share = refused;
        EXPECT_EQ(refusal_of(options), "tensorpool: pool 'pool': guard_share is " +
                                           std::to_string(refused) +
                                           "; expected a number from 0 to 1");
    }
}

}  // namespace
}  // namespace tensorpool
