#pragma once

#include "models/byte_reader.hpp"
#include "models/model_contents.hpp"

namespace tensorpool::files {

/// The header's description of one tensor, with the offsets of its parts in the file.
struct SafetensorsTensor {
    std::string_view name;
    std::uint64_t name_offset = 0;
    std::string_view type;
    std::uint64_t type_offset = 0;
    std::vector<std::uint64_t> shape;
    std::uint64_t shape_offset = 0;
    std::vector<std::uint64_t>
        data_offsets;  ///< begin and end, relative to the beginning of the data
    std::uint64_t data_offsets_offset = 0;
};

/// Checks the tensors of a header, and that together they cover all data of the file.
class SafetensorsTensors {
public:
    SafetensorsTensors(ModelContents& to, std::uint64_t data_begin)
        : to_(to), in_(to.bytes, to.name), data_begin_(data_begin) {}

    void add(const SafetensorsTensor& tensor);
    /// Checks the tensors together, after all were added. They must cover the data without holes or
    /// overlaps, as the format's own library requires, so that nothing can hide in a file.
    void finish();

private:
    std::uint64_t data_bytes() const { return to_.bytes.size() - data_begin_; }
    std::uint64_t bytes_of(const SafetensorsTensor& tensor, const ElementType& type) const;
    void check_offsets(const SafetensorsTensor& tensor, std::uint64_t bytes) const;
    void refuse_duplicates();
    void check_tiling();
    void check_begin(std::size_t number, std::uint64_t expected);

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

}  // namespace tensorpool::files
