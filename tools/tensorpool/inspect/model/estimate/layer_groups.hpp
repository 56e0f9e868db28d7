#pragma once

#include <string>
#include <vector>

#include "inspect/model/contents.hpp"

namespace tensorpool::command::model {

/// Layers of equal size, shown in one row.
struct LayerGroup {
    std::string name;          ///< "blk.0-3, 6, 9-31" or "embeddings"; not yet escaped
    std::uint64_t layers = 0;  ///< 0: the group is not of layers
    Amount each;               ///< of one layer
    Amount all;
};

/// Groups the layers of one stem that have the same numbers of tensors, parameters and bytes. A
/// group is listed at the position of its first layer.
std::vector<LayerGroup> group_layers(const Contents& contents);

}  // namespace tensorpool::command::model
