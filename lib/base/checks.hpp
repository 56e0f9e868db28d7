#pragma once

#include <tensorpool/pool_options.hpp>

namespace tensorpool::base {

/// Returns whether a pool or an arena with these checks checks every call.
constexpr bool checks_calls(Checks checks) noexcept {
    return checks != Checks::off && checks != Checks::sampled;
}

/// Returns whether the requested size of each block is remembered, and leaks are reported.
constexpr bool checks_sizes(Checks checks) noexcept {
    return checks == Checks::full || checks == Checks::hardened;
}

}  // namespace tensorpool::base

namespace tensorpool {

/// Throws std::invalid_argument if a field of `growth` is out of range. The message names `owner`
/// (such as "pool 'images'"), the field, its value and the expected range.
void validate(const GrowthPolicy& growth, const std::string& owner);

}  // namespace tensorpool
