#pragma once

/// @file
/// What a model's file holds, summed up.

#include <cstdint>
#include <string_view>
#include <vector>

#include <tensorpool/model_file.hpp>

#include "model/estimate/estimate.hpp"
#include "model/estimate/place.hpp"

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

struct PlaceAmount {
    Place place;
    Amount amount;
};

/// Views into the file, which must outlive it.
struct Contents {
    Amount all;
    std::vector<TypeAmount> by_type;    ///< the largest first
    std::vector<PlaceAmount> by_place;  ///< embeddings, layers by their numbers, output, other
    std::vector<const ModelTensor*> largest;
};

/// `top`: how many of the largest.
Contents sum_up(const ModelFile& file, std::size_t top);

/// For the estimate. Layers are those of the stem that has most bytes; others (as of an encoder of
/// pictures) count as other.
Weights weights_of(const ModelFile& file, const Contents& contents);

}  // namespace tensorpool::command::model
