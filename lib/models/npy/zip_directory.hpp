#pragma once

#include "models/byte_reader.hpp"
#include "models/model_contents.hpp"

namespace tensorpool::files {

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
