#pragma once

#include "models/model_contents.hpp"

namespace tensorpool::files {

struct NumberList {
    std::vector<std::uint64_t> numbers;
    std::uint64_t offset = 0;  ///< of its beginning in the file

    void clear() noexcept {
        numbers.clear();
        offset = 0;
    }
};

/// The header's description of one tensor, with the offsets of its parts in the file.
struct SafetensorsTensor {
    std::string_view name;
    std::uint64_t name_offset = 0;
    std::string_view type;
    std::uint64_t type_offset = 0;
    NumberList shape;
    NumberList data_offsets;  ///< begin and end, relative to the beginning of the data
};

/// Checks the tensors of a header, and that together they cover all data of the file.
class SafetensorsTensors {
public:
    SafetensorsTensors(ModelContents& to, std::uint64_t data_begin)
        : to_(to), in_(to.bytes, to.name), data_begin_(data_begin) {}

    void add(const SafetensorsTensor& tensor) {
        in_.enter("tensor", to_.tensors.size());
        in_.call(tensor.name);
        const tensors::SafetensorsType* const type = tensors::safetensors_type(tensor.type);
        if (type == nullptr) {
            in_.fail(
                "dtype", tensor.type_offset,
                "found " + in_quotes(tensor.type) + ", expected a type of the format, such as F32");
        }
        const ElementType element{type->name, type->type};
        const std::uint64_t bytes = bytes_of(tensor, element);
        check_offsets(tensor, bytes);
        to_.tensors.push_back({.name = tensor.name,
                               .type = element,
                               .shape = to_.shapes.add(tensor.shape.numbers),
                               .offset = data_begin_ + tensor.data_offsets.numbers[0],
                               .bytes = bytes});
        positions_.push_back({tensor.name_offset, tensor.data_offsets.offset});
    }
    /// Checks the tensors together, after all were added. They must cover the data without holes or
    /// overlaps, as the format's own library requires, so that nothing can hide in a file.
    void finish() {
        refuse_duplicates();
        check_tiling();
    }

private:
    std::uint64_t data_bytes() const { return to_.bytes.size() - data_begin_; }
    std::uint64_t bytes_of(const SafetensorsTensor& tensor, const ElementType& type) const {
        const std::uint64_t bytes = tensor_bytes(in_, tensor.shape.numbers, type.data, "shape",
                                                 tensor.shape.offset, "dimensions");
        const std::uint64_t elements = *tensors::count_elements(tensor.shape.numbers);
        const std::uint64_t block = type.data.block_elements();
        if (elements % block != 0) {
            in_.fail("shape", tensor.shape.offset,
                     "found " + std::to_string(elements) + " elements, expected a multiple of " +
                         std::to_string(block) + ", which fill whole bytes with " +
                         std::string(type.name));
        }
        return bytes;
    }
    void check_offsets(const SafetensorsTensor& tensor, std::uint64_t bytes) const {
        const std::uint64_t begin = tensor.data_offsets.numbers[0];
        const std::uint64_t end = tensor.data_offsets.numbers[1];
        const auto fail = [&](const std::string& expected) {
            in_.fail("data_offsets", tensor.data_offsets.offset,
                     "found " + std::to_string(begin) + " to " + std::to_string(end) +
                         ", expected " + expected);
        };
        if (begin > end) fail("a beginning at or before the end");
        if (end > data_bytes()) {
            fail("an end within the " + std::to_string(data_bytes()) + " B of data in the file");
        }
        if (end - begin != bytes) fail(std::to_string(bytes) + " B by shape and dtype");
    }
    void refuse_duplicates() {
        const auto duplicates = to_.index_tensors();
        if (!duplicates) return;
        in_.fail_duplicate("tensor", duplicates->second, to_.tensors[duplicates->second].name,
                           duplicates->first, "name", "name", positions_[duplicates->second].name);
    }
    void check_tiling() {
        std::uint64_t end = data_begin_;
        visit_by_offset(to_.tensors, [&](std::size_t number, std::size_t) {
            check_begin(number, end);
            end = to_.tensors[number].offset + to_.tensors[number].bytes;
        });
        if (end == to_.bytes.size()) return;
        in_.leave();
        in_.fail("data", end,
                 "found " + std::to_string(to_.bytes.size() - end) +
                     " B behind the last tensor, expected none");
    }
    void check_begin(std::size_t number, std::uint64_t expected) {
        const ModelTensor& tensor = to_.tensors[number];
        if (tensor.offset == expected) return;
        in_.enter("tensor", number);
        in_.call(tensor.name);
        in_.fail("data_offsets", positions_[number].data_offsets,
                 "found a beginning of " + std::to_string(tensor.offset - data_begin_) +
                     ", expected " + std::to_string(expected - data_begin_) +
                     ", where the tensor before it ends: there are neither holes nor overlaps");
    }

    ModelContents& to_;
    ByteReader in_;
    const std::uint64_t data_begin_;
    // The offsets of each tensor's name and data offsets in the file.
    struct Positions {
        std::uint64_t name;
        std::uint64_t data_offsets;
    };
    std::vector<Positions> positions_;
};

/// Reads the header, which is JSON and begins at byte `offset` of the file. Its tensors go to
/// `tensors`, its metadata to `to`. A build without the JSON library has another definition, which
/// throws.
void read_safetensors_header(std::string_view header, std::uint64_t offset, ModelContents& to,
                             SafetensorsTensors& tensors);

}  // namespace tensorpool::files
