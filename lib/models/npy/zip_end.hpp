#pragma once

#include <cstdint>
#include <string>

#include "models/byte_reader.hpp"

namespace tensorpool::files {

/// The position of a zip file's directory, and the number of its entries.
struct ZipEnd {
    std::uint64_t directory_begin = 0;
    std::uint64_t directory_end = 0;
    std::uint64_t entries = 0;
};

/// Finds the record at the end of a zip file, of 32 or 64 bits, and checks that the directory lies
/// within the file.
ZipEnd read_zip_end(std::span<const std::byte> file, const std::string& file_name);

}  // namespace tensorpool::files
