#include "inspect/model/model_report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tensorpool::command::model {
namespace {

constexpr std::uint64_t usual_context = 4096;

InferencePlan plan_of(const ModelHyperparameters& model, const Request& request) {
    InferencePlan plan;
    const std::uint64_t trained = model.context == 0 ? usual_context : model.context;
    plan.context = request.context.value_or(std::min(usual_context, trained));
    plan.batch = request.batch;
    plan.sequences = request.sequences;
    plan.cache = *find_kv_cache_type(request.cache);
    plan.flash_attention = request.flash_attention;
    const std::uint64_t all = model.layers.size() + 1;
    if (request.layers_on_device || request.device_bytes)
        plan.layers_on_device = std::min(request.layers_on_device.value_or(all), all);
    return plan;
}

MemoryRoom room_of(const Estimation& estimation) {
    const bool uses = estimation.plan.layers_on_device > 0 && estimation.memory.device;
    return {estimation.memory.available, uses ? estimation.memory.device->available : 0};
}

/// Returns the model as if the window were used in each layer.
ModelHyperparameters with_window(ModelHyperparameters model) {
    for (AttentionLayer& layer : model.layers) layer.window = model.unused_window;
    return model;
}

/// Returns how many layers would fit on a device that is present but not requested.
std::uint64_t layers_that_fit(const Estimation& estimation) {
    const auto& device = estimation.memory.device;
    if (!device || estimation.plan.layers_on_device > 0) return 0;
    const PlanFitter fitter(*estimation.model, estimation.weights,
                            {estimation.memory.available, device->available});
    InferencePlan plan = estimation.plan;
    for (plan.layers_on_device = estimation.model->layers.size() + 1; plan.layers_on_device > 0;
         --plan.layers_on_device) {
        if (fitter.fits(plan)) break;
    }
    return plan.layers_on_device;
}

void add_fit(Estimation& estimation) {
    const ModelHyperparameters& model = *estimation.model;
    const PlanFitter fitter(model, estimation.weights, room_of(estimation));
    const InferencePlan& plan = estimation.plan;
    const std::uint64_t max = std::max({model.context, plan.context, usual_context});
    estimation.fits = fitter.fits(plan);
    estimation.largest_context = fitter.largest_context(plan, max);
    if (!estimation.fits) estimation.suggestions = fitter.suggestions(plan);
    estimation.fitting_layers = layers_that_fit(estimation);
    if (model.unused_window > 0 && model.unused_window < plan.context)
        estimation.with_unused_window =
            estimate_memory(with_window(model), estimation.weights, plan);
}

}  // namespace

Estimation make_estimation(std::optional<ModelHyperparameters> model, ModelWeights weights,
                           const Request& request, AvailableMemory memory) {
    Estimation estimation;
    estimation.model = std::move(model);
    estimation.weights = std::move(weights);
    estimation.memory = std::move(memory);
    if (!estimation.model) {
        estimation.need.host.weights = estimation.weights.total();
        estimation.fits = estimation.need.host.weights <= estimation.memory.available;
        return estimation;
    }
    estimation.plan = plan_of(*estimation.model, request);
    const std::string problem = problem_of_cache(*estimation.model, estimation.plan);
    if (!problem.empty()) throw CommandError(wrong_usage, problem);
    estimation.need = estimate_memory(*estimation.model, estimation.weights, estimation.plan);
    add_fit(estimation);
    return estimation;
}

std::string cache_type_names() {
    std::string names;
    for (const KvCacheType& type : kv_cache_types()) {
        names += names.empty() ? "" : ", ";
        names += type.name;
    }
    return names;
}

std::string problem_of_cache_type(const std::string& name) {
    if (find_kv_cache_type(name) != nullptr) return "";
    return fmt::format("'{}' is not a type of a cache; expected one of {}", printable(name),
                       cache_type_names());
}

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
