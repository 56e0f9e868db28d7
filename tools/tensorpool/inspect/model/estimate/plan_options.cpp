#include "inspect/model/estimate/plan_options.hpp"

#include <fmt/format.h>

namespace tensorpool::command::model {

std::string options_between(const InferencePlan& request, const InferencePlan& plan) {
    std::string options;
    if (plan.layers_on_device != request.layers_on_device)
        options += fmt::format(" --layers-on-device {}", plan.layers_on_device);
    if (plan.context != request.context) options += fmt::format(" --context {}", plan.context);
    if (plan.sequences != request.sequences)
        options += fmt::format(" --sequences {}", plan.sequences);
    if (plan.cache.name != request.cache.name)
        options += fmt::format(" --kv-type {}", plan.cache.name);
    if (plan.flash_attention != request.flash_attention) options += " --flash-attention on";
    if (plan.batch != request.batch) options += fmt::format(" --batch {}", plan.batch);
    return options.empty() ? options : options.substr(1);
}

}  // namespace tensorpool::command::model
