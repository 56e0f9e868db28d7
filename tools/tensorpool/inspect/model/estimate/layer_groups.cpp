#include "inspect/model/estimate/layer_groups.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>

namespace tensorpool::command::model {
namespace {

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
