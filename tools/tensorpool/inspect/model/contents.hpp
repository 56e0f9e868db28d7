#pragma once

/// @file
/// A summary of the tensors in a model's file.

#include <cstdint>
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

}  // namespace tensorpool::command::model
