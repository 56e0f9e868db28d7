#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <tensorpool/model_file.hpp>

namespace tensorpool::files {

/// Returns the numbers of the tensors, ordered by their beginning, then by their end. Returns an
/// empty vector if the tensors are in that order already, as most writers leave them.
std::vector<std::uint32_t> order_by_offset(std::span<const ModelTensor> tensors);

/// Calls `visit(number, previous)` for each tensor in the order of their bytes. `previous` is the
/// number of the tensor before it, or its own for the first.
template <class Visit>
void visit_by_offset(std::span<const ModelTensor> tensors, Visit visit) {
    const std::vector<std::uint32_t> order = order_by_offset(tensors);
    const auto number = [&](std::size_t i) { return order.empty() ? i : order[i]; };
    for (std::size_t i = 0; i < tensors.size(); ++i) visit(number(i), number(i == 0 ? 0 : i - 1));
}

}  // namespace tensorpool::files
