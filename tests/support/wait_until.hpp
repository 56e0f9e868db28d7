#pragma once

#include <gtest/gtest.h>

#include <source_location>
#include <string_view>
#include <type_traits>

#include "support/bounded_wait.hpp"

namespace tensorpool::testing {

/// Yields until `condition`, an atomic or a function, is true. If it never is, the test fails with
/// `what` it waited for, instead of blocking the machine. Returns whether it is true.
template <class Condition>
bool wait_until(std::string_view what, const Condition& condition,
                std::source_location at = std::source_location::current()) {
    const bool is_reached = yield_until([&] {
        if constexpr (std::is_invocable_v<const Condition&>) {
            return static_cast<bool>(condition());
        } else {
            return static_cast<bool>(condition.load());
        }
    });
    if (!is_reached) {
        ADD_FAILURE_AT(at.file_name(), static_cast<int>(at.line()))
            << "waited " << max_wait.count() << " s until " << what;
    }
    return is_reached;
}

}  // namespace tensorpool::testing
