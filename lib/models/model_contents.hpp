#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/model_file.hpp>

#include "models/name_index.hpp"
#include "models/shapes.hpp"

namespace tensorpool::files {

/// Returns the name by which a thing is found.
struct NameOf {
    std::string_view operator()(const ModelTensor& tensor) const noexcept { return tensor.name; }
    std::string_view operator()(const MetadataEntry& entry) const noexcept { return entry.key; }
};

/// The contents of a file, filled in by a reader. Names, keys and values are views into `bytes`;
/// those that had to be decoded lie in `decoded`.
struct ModelContents {
    std::string name;
    std::span<const std::byte> bytes;
    ModelFormat format = ModelFormat::gguf;
    std::uint32_t version = 0;
    std::vector<ModelTensor> tensors;
    Shapes shapes;
    std::vector<MetadataEntry> metadata;
    std::deque<std::string> decoded;
    NameIndex tensors_by_name;
    NameIndex metadata_by_key;

    std::optional<NameIndex::Duplicates> index_tensors() {
        return tensors_by_name.build(std::span<const ModelTensor>(tensors), NameOf());
    }
    std::optional<NameIndex::Duplicates> index_metadata() {
        return metadata_by_key.build(std::span<const MetadataEntry>(metadata), NameOf());
    }
};

/// Readers of one format each. REQUIRES: `to` has `name` and `bytes`, and the bytes begin like a
/// file of that format. They throw ModelFileError.
void read_gguf(ModelContents& to);
void read_safetensors(ModelContents& to);
void read_npy(ModelContents& to);
void read_npz(ModelContents& to);

}  // namespace tensorpool::files
