#include <tuple>

#include <nlohmann/json.hpp>

#include "common/html.hpp"
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

Json to_json(const Amount& amount) {
    return {
        {"tensors", amount.tensors}, {"parameters", amount.parameters}, {"bytes", amount.bytes}};
}

Json by_type(const Contents& contents) {
    Json list = Json::array();
    for (const auto& [type, amount] : contents.by_type) {
        Json row = {{"type", type}};
        row.update(to_json(amount));
        list.push_back(std::move(row));
    }
    return list;
}

Json by_layer(const Contents& contents) {
    Json list = Json::array();
    for (const auto& [location, amount] : contents.by_location) {
        Json row = {{"part", to_string(location.part)}};
        if (location.part == ModelPart::layer) {
            row["name"] = fmt::format("{}{}", location.stem, location.layer);
            row["layer"] = location.layer;
        }
        row.update(to_json(amount));
        list.push_back(std::move(row));
    }
    return list;
}

Json largest(const Contents& contents) {
    Json list = Json::array();
    for (const ModelTensor* const tensor : contents.largest) list.push_back(tensor->name);
    return list;
}

Json to_json(const MetadataArray& array) {
    constexpr std::size_t max_elements = 4096;
    Json json = {{"array_of", array.type}, {"count", array.count}};
    if (array.count > max_elements) return json;
    if (const auto values = whole_numbers(array, max_elements)) json["values"] = *values;
    return json;
}

Json to_json(const MetadataValue& value) {
    return std::visit(
        [](const auto& held) {
            if constexpr (std::is_same_v<std::decay_t<decltype(held)>, MetadataArray>) {
                return to_json(held);
            } else {
                return Json(held);
            }
        },
        value);
}

/// Adds the metadata key by key, because the library's ordered objects compare each new key with
/// all others.
Json metadata_json(const ModelFile& file) {
    Json json = Json::object();
    auto& members = json.get_ref<Json::object_t&>();
    for (const auto& [key, value] : file.metadata()) {
        members.emplace_back(std::string(key), to_json(value));
    }
    return json;
}

Json tensors_json(const ModelFile& file) {
    Json list = Json::array();
    for (const ModelTensor& tensor : file.tensors()) {
        Json& row = list.emplace_back(Json{{"name", tensor.name},
                                           {"type", tensor.type.name},
                                           {"shape", tensor.shape},
                                           {"offset", tensor.offset},
                                           {"bytes", tensor.bytes}});
        if (tensor.column_major) row["column_major"] = true;
    }
    return list;
}

Json to_json(const Estimation& estimation) {
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
    return json;
}

using detail::product;
using detail::sum;

std::uint64_t parameters_of(const ModelTensor& tensor) noexcept {
    std::uint64_t elements = 1;
    for (const std::uint64_t dimension : tensor.shape) elements = product(elements, dimension);
    return elements;
}

std::vector<const ModelTensor*> largest_of(const ModelFile& file, std::size_t top) {
    std::vector<const ModelTensor*> tensors;
    tensors.reserve(file.tensors().size());
    for (const ModelTensor& tensor : file.tensors()) tensors.push_back(&tensor);
    const auto end = tensors.begin() + static_cast<std::ptrdiff_t>(std::min(top, tensors.size()));
    std::partial_sort(
        tensors.begin(), end, tensors.end(), [](const ModelTensor* one, const ModelTensor* other) {
            return std::tie(other->bytes, one->name) < std::tie(one->bytes, other->name);
        });
    tensors.erase(end, tensors.end());
    return tensors;
}

// The number of ranges that are shown.
constexpr std::size_t max_ranges = 5;

struct Range {
    std::uint32_t first;
    std::uint32_t last;
};

/// Returns a name such as "blk.0-3, 6, 9-31".
std::string name_of(std::string_view stem, const std::vector<Range>& ranges) {
    std::string name(stem);
    for (std::size_t i = 0; i < ranges.size() && i < max_ranges; ++i) {
        const auto [first, last] = ranges[i];
        name += i == 0 ? "" : ", ";
        name += first == last ? std::to_string(first) : fmt::format("{}-{}", first, last);
    }
    return ranges.size() > max_ranges ? name + ", ..." : name;
}

struct Growing {
    std::size_t row;
    std::vector<Range> ranges;
};

using Likeness = std::tuple<std::string_view, std::uint64_t, std::uint64_t, std::uint64_t>;

}  // namespace

std::string estimation_json(const Estimation& estimation) {
    return json_line(to_json(estimation));
}

std::string json_report(const Report& report) {
    const ModelFile& file = report.file;
    const Contents& contents = report.contents;
    Json json = {{"file", file.name()},
                 {"format", to_string(file.format())},
                 {"version", file.version()},
                 {"file_bytes", file.file_bytes()},
                 {"tensor_count", contents.all.tensors},
                 {"parameters", contents.all.parameters},
                 {"tensor_bytes", contents.all.bytes},
                 {"by_type", by_type(contents)},
                 {"by_layer", by_layer(contents)},
                 {"largest", largest(contents)}};
    json["metadata"] = metadata_json(file);
    if (report.estimation) json["estimate"] = to_json(*report.estimation);
    json["tensors"] = tensors_json(file);
    return json_line(json);
}

void Amount::add(const ModelTensor& tensor) noexcept {
    ++tensors;
    parameters = sum(parameters, parameters_of(tensor));
    bytes = sum(bytes, tensor.bytes);
}

bool InOrderOfUse::operator()(const TensorLocation& one, const TensorLocation& other) const {
    return std::tie(one.part, one.stem, one.layer) < std::tie(other.part, other.stem, other.layer);
}

Contents sum_up(const ModelFile& file, std::size_t top) {
    Contents contents;
    std::map<std::string_view, Amount> types;
    for (const ModelTensor& tensor : file.tensors()) {
        contents.all.add(tensor);
        types[tensor.type.name].add(tensor);
        contents.by_location[location_of(tensor.name)].add(tensor);
    }
    contents.by_type.assign(types.begin(), types.end());
    std::ranges::stable_sort(contents.by_type, std::ranges::greater(),
                             [](const auto& type) { return type.second.bytes; });
    contents.largest = largest_of(file, top);
    return contents;
}

std::vector<LayerGroup> group_layers(const Contents& contents) {
    std::vector<LayerGroup> rows;
    std::map<Likeness, Growing> alike;
    for (const auto& [location, amount] : contents.by_location) {
        if (location.part != ModelPart::layer) {
            rows.push_back({to_string(location.part), 0, amount, amount});
            continue;
        }
        const Likeness likeness{location.stem, amount.tensors, amount.parameters, amount.bytes};
        const auto [found, added] = alike.try_emplace(likeness, Growing{rows.size(), {}});
        if (added) rows.push_back({"", 0, amount, {}});
        auto& [row, ranges] = found->second;
        if (!ranges.empty() && ranges.back().last + 1 == location.layer) {
            ranges.back().last = location.layer;
        } else {
            ranges.push_back({location.layer, location.layer});
        }
        ++rows[row].layers;
        rows[row].all.tensors += amount.tensors;
        rows[row].all.parameters += amount.parameters;
        rows[row].all.bytes += amount.bytes;
    }
    for (const auto& [likeness, growing] : alike) {
        rows[growing.row].name = name_of(std::get<0>(likeness), growing.ranges);
    }
    return rows;
}

}  // namespace tensorpool::command::model
