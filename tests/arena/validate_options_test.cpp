#include "arena/arena_state.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "arena/arena_test.hpp"

namespace tensorpool::arena {
namespace {

std::string refusal_of(ArenaOptions options) {
    options.name = "mine";
    return testing::message_of<std::invalid_argument>([&] { validate(options); });
}

TEST(ArenaValidateOptions, DefaultsAreValid) {
    EXPECT_NO_THROW(validate({}));
    EXPECT_NO_THROW(validate({.growth = GrowthPolicy::aggressive()}));
}

TEST(ArenaValidateOptions, AnySizeIsValid) {
    EXPECT_EQ(refusal_of({.initial_capacity = SIZE_MAX, .max_capacity = 1, .retain = 0}), "");
    EXPECT_EQ(refusal_of({.initial_capacity = 0, .max_allocation = SIZE_MAX}), "");
    EXPECT_EQ(refusal_of({.growth = {.step = SIZE_MAX, .factor = 1024, .fraction = 0}}), "");
}

TEST(ArenaValidateOptions, AlignmentMustBeAPowerOfTwo) {
    for (unsigned bit = 0; bit < 64; ++bit) {
        EXPECT_EQ(refusal_of({.alignment = std::size_t{1} << bit}), "");
    }
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{SIZE_MAX}}) {
        EXPECT_EQ(refusal_of({.alignment = alignment}), "tensorpool: arena 'mine': alignment is " +
                                                            std::to_string(alignment) +
                                                            " B; expected a power of two");
    }
}

TEST(ArenaValidateOptions, MaxAllocationMustBeAboveZero) {
    EXPECT_EQ(refusal_of({.max_allocation = 0}),
              "tensorpool: arena 'mine': max_allocation is 0 B; expected at least 1 B");
    EXPECT_EQ(refusal_of({.max_allocation = 1}), "");
}

TEST(ArenaValidateOptions, GrowthMustBeWithinItsBounds) {
    EXPECT_EQ(refusal_of({.growth = {.factor = -0.5}}),
              "tensorpool: arena 'mine': growth.factor is -0.500000; expected 0 to 1024");
    EXPECT_EQ(refusal_of({.growth = {.fraction = 1.5}}),
              "tensorpool: arena 'mine': growth.fraction is 1.500000; expected 0 to 1");
    EXPECT_NE(refusal_of({.growth = {.factor = std::numeric_limits<double>::quiet_NaN()}}), "");
}

TEST(ArenaValidateOptions, EveryKindOfArenaIsValidated) {
    const ArenaOptions options{.alignment = 48};
    std::byte buffer[64];
    EXPECT_THROW(Arena{options}, std::invalid_argument);
    EXPECT_THROW(Arena::over(buffer, options), std::invalid_argument);
    EXPECT_THROW(Arena::measuring(options), std::invalid_argument);
}

}  // namespace
}  // namespace tensorpool::arena
