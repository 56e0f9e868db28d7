#include "inspect/model/model_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include <tensorpool/detail/saturating.hpp>

namespace tensorpool::command::model {
namespace {

using detail::product;
using detail::sum;

struct HashOfLocation {
    std::size_t operator()(const TensorLocation& location) const noexcept {
        const std::size_t stem = std::hash<std::string_view>()(location.stem);
        return stem ^ (location.layer * 0x9e3779b97f4a7c15U) ^
               static_cast<std::size_t>(location.part);
    }
};

std::uint64_t parameters_of(const ModelTensor& tensor) noexcept {
    std::uint64_t elements = 1;
    for (const std::uint64_t dimension : tensor.shape) elements = product(elements, dimension);
    return elements;
}

/// Groups in the order of their first tensors. Adjacent tensors of a file are mostly in one group,
/// so the last group is checked first.
template <class Key, class Hash, class Row>
class Groups {
public:
    Amount& of(const Key& key) {
        if (last_ < rows_.size() && key == key_of(rows_[last_])) return rows_[last_].amount;
        const auto [found, added] = index_.emplace(key, rows_.size());
        if (added) rows_.push_back({key, {}});
        last_ = found->second;
        return rows_[last_].amount;
    }
    std::vector<Row> take() { return std::move(rows_); }

private:
    static const Key& key_of(const Row& row) {
        if constexpr (std::is_same_v<Key, TensorLocation>) {
            return row.location;
        } else {
            return row.type;
        }
    }
    std::unordered_map<Key, std::size_t, Hash> index_;
    std::vector<Row> rows_;
    std::size_t last_ = 0;
};

bool comes_before(const LocationAmount& one, const LocationAmount& other) {
    return std::tie(one.location.part, one.location.stem, one.location.layer) <
           std::tie(other.location.part, other.location.stem, other.location.layer);
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

Contents sum_up(const ModelFile& file, std::size_t top) {
    Contents contents;
    Groups<std::string_view, std::hash<std::string_view>, TypeAmount> types;
    Groups<TensorLocation, HashOfLocation, LocationAmount> locations;
    for (const ModelTensor& tensor : file.tensors()) {
        contents.all.add(tensor);
        types.of(tensor.type.name).add(tensor);
        locations.of(location_of(tensor.name)).add(tensor);
    }
    contents.by_type = types.take();
    contents.by_location = locations.take();
    std::ranges::stable_sort(contents.by_type, [](const TypeAmount& one, const TypeAmount& other) {
        return one.amount.bytes > other.amount.bytes;
    });
    std::ranges::sort(contents.by_location, comes_before);
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
