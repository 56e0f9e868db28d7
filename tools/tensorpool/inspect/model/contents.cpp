#include "inspect/model/model_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include <tensorpool/detail/saturating.hpp>

namespace tensorpool::command::model {
namespace {

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
