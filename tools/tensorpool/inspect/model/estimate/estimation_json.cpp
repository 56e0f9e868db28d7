#include <nlohmann/json.hpp>

#include "inspect/model/estimate/plan_options.hpp"
#include "inspect/model/model_report.hpp"

namespace tensorpool::command::model {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const MemoryNeed& need) {
    return {{"weights_bytes", need.weights},
            {"cache_bytes", need.cache},
            {"compute_bytes", need.compute},
            {"bytes", need.total()}};
}

Json to_json(const MemoryEstimate& estimate, const InferencePlan& plan) {
    Json json = {{"host", to_json(estimate.host)}};
    json["device"] = plan.layers_on_device > 0 ? to_json(estimate.device) : Json(nullptr);
    return json;
}

Json to_json(const InferencePlan& plan) {
    return {{"context", plan.context},
            {"batch", plan.batch},
            {"sequences", plan.sequences},
            {"kv_type", plan.cache.name},
            {"flash_attention", plan.flash_attention},
            {"layers_on_device", plan.layers_on_device}};
}

Json to_json(const ModelHyperparameters& model) {
    Json layers = Json::array();
    for (const AttentionLayer& layer : model.layers) {
        layers.push_back({{"heads", layer.heads},
                          {"key_value_heads", layer.key_value_heads},
                          {"window", layer.window}});
    }
    return {{"architecture", model.architecture},   {"context", model.context},
            {"embedding", model.embedding},         {"vocabulary", model.vocabulary},
            {"feed_forward", model.feed_forward},   {"experts_used", model.experts_used},
            {"key_length", model.key_length},       {"value_length", model.value_length},
            {"unused_window", model.unused_window}, {"layers", layers}};
}

Json memory_json(const AvailableMemory& memory) {
    Json json = {{"available_bytes", memory.available}, {"total_bytes", memory.total}};
    json["device"] = nullptr;
    if (memory.device) {
        json["device"] = {{"name", memory.device->name},
                          {"available_bytes", memory.device->available},
                          {"total_bytes", memory.device->total}};
    } else {
        json["device_unknown"] = memory.why_no_device;
    }
    return json;
}

Json suggestions_json(const Estimation& estimation) {
    Json list = Json::array();
    for (const PlanSuggestion& suggestion : estimation.suggestions) {
        Json row = {{"options", options_between(estimation.plan, suggestion.plan)},
                    {"plan", to_json(suggestion.plan)}};
        row.update(to_json(suggestion.estimate, suggestion.plan));
        list.push_back(std::move(row));
    }
    return list;
}

}  // namespace

std::string estimation_json(const Estimation& estimation) {
    Json json = {{"fits", estimation.fits}, {"memory", memory_json(estimation.memory)}};
    json.update(to_json(estimation.need, estimation.plan));
    if (!estimation.model) {
        json["unknown"] = estimation.why_unknown;
    } else {
        json["plan"] = to_json(estimation.plan);
        json["hyperparameters"] = to_json(*estimation.model);
        json["largest_context"] = estimation.largest_context;
        json["suggestions"] = suggestions_json(estimation);
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tensorpool::command::model
