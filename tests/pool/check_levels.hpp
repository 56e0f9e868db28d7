#pragma once

#include <gtest/gtest.h>

#include <string>

#include <tensorpool/pool_options.hpp>

namespace tensorpool::testing {

/// Parameters for tests that run at every level of checks.
inline auto all_check_levels() {
    return ::testing::Values(Checks::off, Checks::basic, Checks::full);
}

inline std::string name_of_level(const ::testing::TestParamInfo<Checks>& level) {
    static constexpr const char* names[] = {"off", "basic", "full"};
    return names[static_cast<unsigned>(level.param)];
}

}  // namespace tensorpool::testing
