#pragma once

/// @file
/// A summary of the tensors in a model's file.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/model_file.hpp>
#include <tensorpool/model_hyperparameters.hpp>

namespace tensorpool::command::model {

struct Amount {
    std::uint64_t tensors = 0;
    std::uint64_t parameters = 0;  ///< elements
    std::uint64_t bytes = 0;
    void add(const ModelTensor& tensor) noexcept;
    friend bool operator==(const Amount&, const Amount&) = default;
};

struct TypeAmount {
    std::string_view type;
    Amount amount;
};

struct LocationAmount {
    TensorLocation location;
    Amount amount;
};

/// The summary of a file. Holds views into the file, which must outlive it.
struct Contents {
    Amount all;
    std::vector<TypeAmount> by_type;          ///< the largest first
    std::vector<LocationAmount> by_location;  ///< embeddings, layers by number, output, other
    std::vector<const ModelTensor*> largest;
};

/// Summarizes a file, with its `top` largest tensors.
Contents sum_up(const ModelFile& file, std::size_t top);

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
