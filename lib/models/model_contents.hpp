#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory_resource>
#include <numeric>
#include <tuple>

#include <tensorpool/model_file.hpp>

#include "models/byte_reader.hpp"
#include "tensors/tensor_sizes.hpp"

namespace tensorpool::files {

/// Returns the numbers of the tensors, ordered by their beginning, then by their end. Returns an
/// empty vector if the tensors are in that order already, as most writers leave them.
inline std::vector<std::uint32_t> order_by_offset(std::span<const ModelTensor> tensors) {
    const auto range = [](const ModelTensor& tensor) {
        return std::tuple(tensor.offset, tensor.bytes);
    };
    if (std::ranges::is_sorted(tensors, {}, range)) return {};
    std::vector<std::uint32_t> order(tensors.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return range(tensors[i]); });
    return order;
}

/// Calls `visit(number, previous)` for each tensor in the order of their bytes. `previous` is the
/// number of the tensor before it, or its own for the first.
template <class Visit>
void visit_by_offset(std::span<const ModelTensor> tensors, Visit visit) {
    const std::vector<std::uint32_t> order = order_by_offset(tensors);
    const auto number = [&](std::size_t i) { return order.empty() ? i : order[i]; };
    for (std::size_t i = 0; i < tensors.size(); ++i) visit(number(i), number(i == 0 ? 0 : i - 1));
}

/// Finds things by name, and finds duplicate names. Keys are sorted by hash, then by name, so that
/// a file whose names all have the same hash takes no more than O(n log n) comparisons.
class NameIndex {
public:
    /// Two things of the same name, the earlier first.
    struct Duplicates {
        std::size_t first;
        std::size_t second;
    };

    /// Builds the index; `name_of(thing)` returns a name. Returns duplicates, if there are any.
    /// REQUIRES: at most 2^32 - 1 things.
    template <class Thing, class NameOf>
    std::optional<Duplicates> build(std::span<const Thing> things, NameOf name_of) {
        keys_.clear();
        keys_.reserve(things.size());
        for (std::size_t i = 0; i < things.size(); ++i) {
            keys_.push_back(hash_of(name_of(things[i])) | i);
        }
        std::ranges::sort(keys_, [&](std::uint64_t one, std::uint64_t other) {
            if (hash_part(one) != hash_part(other)) return one < other;
            const auto order =
                name_of(things[index_part(one)]).compare(name_of(things[index_part(other)]));
            return order != 0 ? order < 0 : one < other;
        });
        for (std::size_t i = 1; i < keys_.size(); ++i) {
            if (hash_part(keys_[i - 1]) != hash_part(keys_[i])) continue;
            const Duplicates duplicates = {index_part(keys_[i - 1]), index_part(keys_[i])};
            if (name_of(things[duplicates.first]) == name_of(things[duplicates.second]))
                return duplicates;
        }
        return std::nullopt;
    }

    /// Returns the thing of that name among those that the index was built from; nullptr if there
    /// is none.
    template <class Thing, class NameOf>
    const Thing* find(std::span<const Thing> things, NameOf name_of,
                      std::string_view name) const noexcept {
        const std::uint64_t hash = hash_of(name);
        const auto at = std::ranges::partition_point(keys_, [&](std::uint64_t key) {
            if (hash_part(key) != hash) return key < hash;
            return name_of(things[index_part(key)]) < name;
        });
        if (at == keys_.end()) return nullptr;
        const Thing& thing = things[index_part(*at)];
        return name_of(thing) == name ? &thing : nullptr;
    }

private:
    static std::uint64_t hash_of(std::string_view name) noexcept {
        return hash_part(std::hash<std::string_view>()(name));
    }
    static std::uint64_t hash_part(std::uint64_t key) noexcept { return key & ~0xffffffffULL; }
    static std::size_t index_part(std::uint64_t key) noexcept { return key & 0xffffffff; }

    // The upper half is a hash, the lower half the number of the thing.
    std::vector<std::uint64_t> keys_;
};

/// More than any library that writes these files allows (NumPy and PyTorch allow 64).
inline constexpr std::size_t max_dimensions = 64;

/// The shapes of many tensors in a few pieces of memory. Shapes that were added never move.
class Shapes {
public:
    std::span<const std::uint64_t> add(std::span<const std::uint64_t> shape) {
        void* const memory = memory_->allocate(shape.size_bytes(), alignof(std::uint64_t));
        auto* const copy = static_cast<std::uint64_t*>(memory);
        std::ranges::copy(shape, copy);
        return {copy, shape.size()};
    }

private:
    using Memory = std::pmr::monotonic_buffer_resource;
    std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
};

/// Returns the bytes of a tensor. Errors, about `what` in a field at byte `offset`, are reported
/// through `in`.
inline std::uint64_t tensor_bytes(const ByteReader& in, std::span<const std::uint64_t> shape,
                                  const DataType& type, Field field, std::uint64_t offset,
                                  const std::string& what) {
    const auto elements = tensors::count_elements(shape);
    const auto bytes = elements ? tensors::count_bytes(*elements, type) : std::nullopt;
    if (bytes) return *bytes;
    in.fail(
        field, offset,
        "found " + what + " whose product passes 2^63 - 1, in elements or in bytes; expected less");
}

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

    /// Returns the position of a text that lies in `bytes`.
    std::uint64_t offset_of(std::string_view text) const noexcept {
        return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(text.data()) -
                                          bytes.data());
    }
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
