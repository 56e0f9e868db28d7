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
