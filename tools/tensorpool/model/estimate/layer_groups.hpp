#pragma once

#include <string>
#include <vector>

#include "model/contents.hpp"

namespace tensorpool::command::model {

/// Layers that are alike, in one row.
struct LayerGroup {
    std::string name;          ///< "blk.0-3, 6, 9-31", "embeddings"; not yet printable
    std::uint64_t layers = 0;  ///< 0: none of them are layers
    Amount each;               ///< of one layer
    Amount all;
};

/// Layers of one stem with as many tensors, parameters and bytes are one group, which stands where
/// its first layer does.
std::vector<LayerGroup> group_layers(const Contents& contents);

}  // namespace tensorpool::command::model
