#pragma once

#include <gtest/gtest.h>

#include <string>

#include <tensorpool/pool_options.hpp>

namespace tensorpool::testing {

/// Parameters for tests of what does not depend on the level of checks: without checks, and with
/// all of them. What `Checks::basic` adds or omits has tests of its own.
inline auto check_levels() {
    return ::testing::Values(Checks::off, Checks::full);
}

inline std::string name_of_level(const ::testing::TestParamInfo<Checks>& level) {
    static constexpr const char* names[] = {"off", "basic", "full"};
    return names[static_cast<unsigned>(level.param)];
}

}  // namespace tensorpool::testing
