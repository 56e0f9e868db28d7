#include <string>

#include "models/byte_reader.hpp"
#include "models/model_contents.hpp"
#include "models/npy/npy.hpp"
#include "models/npy/zip_directory.hpp"

/// @file
/// NumPy's archives: zip files of .npy files, as numpy.savez writes them.

namespace tensorpool::files {
namespace {

constexpr std::string_view ending = ".npy";

void read_entry(std::uint64_t index, const ZipEntry& entry, ModelContents& to) {
    ByteReader in(to.bytes, entry.data_begin, entry.data_end, to.name);
    in.enter("entry", index);
    in.call(entry.name);
    if (!entry.name.ends_with(ending)) {
        in.fail("name", entry.header_begin,
                "expected one that ends with .npy: it is not an archive of NumPy");
    }
    read_npy_array(in, entry.name.substr(0, entry.name.size() - ending.size()), to);
}

void refuse_duplicates(const std::vector<ZipEntry>& entries, ModelContents& to) {
    const auto duplicates = to.index_tensors();
    if (!duplicates) return;
    const ZipEntry& entry = entries[duplicates->second];
    ByteReader in(to.bytes, to.name);
    in.enter("entry", duplicates->second);
    in.call(entry.name);
    in.fail("name", entry.header_begin,
            "found the name of entry " + std::to_string(duplicates->first) +
                " again, expected each name once");
}

}  // namespace

void read_npz(ModelContents& to) {
    to.format = ModelFormat::npz;
    const std::vector<ZipEntry> entries = read_zip_directory(to);
    for (std::size_t i = 0; i < entries.size(); ++i) read_entry(i, entries[i], to);
    refuse_duplicates(entries, to);
}

}  // namespace tensorpool::files
