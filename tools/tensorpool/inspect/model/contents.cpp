#include "inspect/model/contents.hpp"

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

}  // namespace tensorpool::command::model
