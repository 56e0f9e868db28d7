#include "models/npy/npy.hpp"

#include <optional>
#include <string>

#include "models/npy/npy_header.hpp"
#include "models/utf8.hpp"
#include "tensors/tensor_sizes.hpp"

/// @file
/// NumPy's array files, versions 1.0, 2.0 and 3.0 of numpy.lib.format.

namespace tensorpool::files {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

void read_magic(ByteReader& in) {
    const std::uint64_t begin = in.position();
    const std::string_view found = in.take_text(magic.size(), "magic");
    if (found == magic) return;
    in.fail("magic", begin, "found " + in_quotes(found) + ", expected " + in_quotes(magic));
}

std::uint32_t read_version(ByteReader& in) {
    const auto major = in.read<std::uint8_t>("version");
    const auto minor = in.read<std::uint8_t>("version");
    if (major >= 1 && major <= 3 && minor == 0) return major;
    in.fail("version", in.position() - 2,
            "found " + std::to_string(major) + '.' + std::to_string(minor) +
                ", expected 1.0, 2.0 or 3.0");
}

std::uint64_t read_header_length(ByteReader& in, std::uint32_t version) {
    constexpr const char* field = "header length";
    return version == 1 ? in.read<std::uint16_t>(field) : in.read<std::uint32_t>(field);
}

ElementType type_of(const ByteReader& in, const NpyHeader& header) {
    if (const auto type = find_numpy_type(header.descr)) return {header.descr, *type};
    const bool objects = header.descr.find('O') != std::string_view::npos;
    in.fail("header", header.descr_offset,
            "found the type " + in_quotes(header.descr) +
                (objects ? ", expected one without Python's objects: they are pickled"
                         : ", expected a type of NumPy such as '<f4'"));
}

std::uint64_t bytes_of(const ByteReader& in, const NpyHeader& header, const ElementType& type) {
    const auto elements = tensors::count_elements(header.shape);
    const auto bytes = elements ? tensors::count_bytes(*elements, type.data) : std::nullopt;
    if (bytes) return *bytes;
    in.fail("header", header.shape_offset,
            "found a shape whose product passes 2^63 - 1, in elements or in bytes; expected less");
}

void check_data(const ByteReader& in, std::uint64_t bytes) {
    if (bytes == in.left()) return;
    in.fail("data", in.position(),
            "found " + std::to_string(in.left()) + " B to the end, expected " +
                std::to_string(bytes) + " B by shape and type" +
                (in.left() > bytes ? " and no second array" : ""));
}

/// Returns the name of the file without its folder and extension.
std::string_view stem_of(std::string_view file) {
    file.remove_prefix(file.find_last_of("/\\") + 1);
    if (file.ends_with(".npy")) file.remove_suffix(4);
    return is_utf8(file) ? file : "array";
}

}  // namespace

std::uint32_t read_npy_array(ByteReader& in, std::string_view name, ModelContents& to) {
    read_magic(in);
    const std::uint32_t version = read_version(in);
    const std::uint64_t length = read_header_length(in, version);
    const std::uint64_t begin = in.position();
    const NpyHeader header = read_npy_header(in, in.take_text(length, "header"), begin);
    const ElementType type = type_of(in, header);
    const std::uint64_t bytes = bytes_of(in, header, type);
    check_data(in, bytes);
    to.tensors.push_back({.name = name,
                          .type = type,
                          .shape = to.shapes.add(header.shape),
                          .column_major = header.fortran_order,
                          .offset = in.position(),
                          .bytes = bytes});
    return version;
}

void read_npy(ModelContents& to) {
    to.format = ModelFormat::npy;
    ByteReader in(to.bytes, to.name);
    to.version = read_npy_array(in, stem_of(to.name), to);
    to.index_tensors();
}

}  // namespace tensorpool::files
