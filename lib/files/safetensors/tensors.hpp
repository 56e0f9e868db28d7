#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "files/byte_reader.hpp"
#include "files/model_contents.hpp"

namespace tensorpool::files {

/// What a header says of one tensor, and where in the file.
struct SafetensorsTensor {
    std::string_view name;
    std::uint64_t name_offset = 0;
    std::string_view type;
    std::uint64_t type_offset = 0;
    std::vector<std::uint64_t> shape;
    std::uint64_t shape_offset = 0;
    std::vector<std::uint64_t> data_offsets;  ///< begin and end, from the data's beginning
    std::uint64_t data_offsets_offset = 0;
};

/// Checks the tensors of a header, and that together they are all of the file's data.
class SafetensorsTensors {
public:
    SafetensorsTensors(ModelContents& to, std::uint64_t data_begin)
        : to_(to), in_(to.bytes, to.name), data_begin_(data_begin) {}

    void add(const SafetensorsTensor& tensor);
    /// When all were added. The data must be tiled without holes, as the format's own library wants
    /// it: nothing may hide in a file, and no byte is two tensors'.
    void finish();

private:
    std::uint64_t data_bytes() const { return to_.bytes.size() - data_begin_; }
    std::uint64_t bytes_of(const SafetensorsTensor& tensor, const ElementType& type) const;
    void check_place(const SafetensorsTensor& tensor, std::uint64_t bytes) const;
    void refuse_twins();
    void check_tiling();
    void check_begin(std::size_t number, std::uint64_t expected);

    ModelContents& to_;
    ByteReader in_;
    const std::uint64_t data_begin_;
    // Of each tensor, where its name and its offsets stand.
    struct Places {
        std::uint64_t name;
        std::uint64_t data_offsets;
    };
    std::vector<Places> places_;
};

}  // namespace tensorpool::files
