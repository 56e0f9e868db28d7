#include "models/model_contents.hpp"

#include <numeric>
#include <tuple>

namespace tensorpool::files {

std::vector<std::uint32_t> order_by_offset(std::span<const ModelTensor> tensors) {
    const auto range = [](const ModelTensor& tensor) {
        return std::tuple(tensor.offset, tensor.bytes);
    };
    if (std::ranges::is_sorted(tensors, {}, range)) return {};
    std::vector<std::uint32_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return range(tensors[i]); });
    return order;
}

}  // namespace tensorpool::files
