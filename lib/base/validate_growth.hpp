#pragma once

#include <string>

#include <tensorpool/growth_policy.hpp>

namespace tensorpool {

/// Throws std::invalid_argument that names `owner`, such as "pool 'images'", the figure, what was
/// found and what was expected.
void validate(const GrowthPolicy& growth, const std::string& owner);

}  // namespace tensorpool
