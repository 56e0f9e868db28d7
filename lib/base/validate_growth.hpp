#pragma once

#include <string>

#include <tensorpool/growth_policy.hpp>

namespace tensorpool {

/// Throws std::invalid_argument if a field of `growth` is out of range. The message names `owner`
/// (such as "pool 'images'"), the field, its value and the expected range.
void validate(const GrowthPolicy& growth, const std::string& owner);

}  // namespace tensorpool
