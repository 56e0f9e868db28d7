#pragma once

#include <string>

#include <tensorpool/model_estimate.hpp>

namespace tensorpool::command::model {

/// Returns the options that change the requested plan to the other one.
std::string options_between(const InferencePlan& request, const InferencePlan& plan);

}  // namespace tensorpool::command::model
