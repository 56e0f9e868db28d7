#include "models/byte_reader.hpp"

#include <tensorpool/model_file.hpp>

#include "models/utf8.hpp"

namespace tensorpool::files {

void ByteReader::fail(Field field, std::uint64_t offset, const std::string& problem) const {
    std::string text;
    if (thing_ != nullptr) {
        text = std::string(thing_) + ' ' + std::to_string(index_);
        if (named_) text += ' ' + in_quotes(name_);
        text += ": ";
    }
    text += field.name;
    if (field.numbered) text += ' ' + std::to_string(field.number);
    throw ModelFileError(*file_name_, text, offset, problem);
}

void ByteReader::fail_short(Field field, std::uint64_t bytes) const {
    fail(field, position_,
         "found " + std::to_string(left()) + " B to the end, expected " + std::to_string(bytes) +
             " B");
}

void ByteReader::fail_count(Field field, std::uint64_t offset, std::uint64_t count,
                            std::uint64_t min_bytes) const {
    fail(field, offset,
         "found " + std::to_string(count) + ", expected at most " +
             std::to_string(left() / min_bytes) + ": each takes at least " +
             std::to_string(min_bytes) + " B, and " + std::to_string(left()) + " B are left");
}

}  // namespace tensorpool::files
