#pragma once

#include "models/model_contents.hpp"

namespace tensorpool::files {

/// The content of a .npy header, with the offsets of its fields in the file.
struct NpyHeader {
    std::string_view descr;
    std::uint64_t descr_offset = 0;
    bool fortran_order = false;
    std::vector<std::uint64_t> shape;
    std::uint64_t shape_offset = 0;
};

/// Reads a Python literal: a dictionary of exactly these three keys, in any order, as
/// numpy.lib.format writes it. `text` begins at byte `offset` of the file. Errors are reported
/// through `in`.
NpyHeader read_npy_header(const ByteReader& in, std::string_view text, std::uint64_t offset);

/// Reads an array that begins at `in`'s position and must end where `in` ends, as the tensor
/// `name`. Returns the version of the format.
std::uint32_t read_npy_array(ByteReader& in, std::string_view name, ModelContents& to);

/// An entry of a zip file. Its directory and its own header agree on these values.
struct ZipEntry {
    std::string_view name;
    std::uint64_t header_begin = 0;
    std::uint64_t data_begin = 0;
    std::uint64_t data_end = 0;
};

/// Reads the directory of a zip file whose entries are stored, not compressed, and compares it with
/// the header of each entry. Entries must not overlap. Checksums are not verified, since that would
/// read all data. Errors name fields as "entry 3 'name': …".
std::vector<ZipEntry> read_zip_directory(const ModelContents& file);

}  // namespace tensorpool::files
