#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "files/byte_reader.hpp"
#include "files/model_contents.hpp"

namespace tensorpool::files {

/// An entry of a zip file, as its directory and its own header agree on it.
struct ZipEntry {
    std::string_view name;
    std::uint64_t header_begin = 0;
    std::uint64_t data_begin = 0;
    std::uint64_t data_end = 0;
};

/// Reads the directory of a zip file whose entries are stored, not compressed, and holds it against
/// the header of each entry; entries do not overlap. Checksums are not looked at: that would touch
/// all data. Errors call fields "entry 3 'name': …".
std::vector<ZipEntry> read_zip_directory(const ModelContents& file);

}  // namespace tensorpool::files
