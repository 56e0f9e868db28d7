#include <bit>
#include <limits>
#include <string>

#include "models/byte_reader.hpp"
#include "models/gguf/gguf_metadata.hpp"
#include "models/gguf/gguf_tensors.hpp"
#include "models/model_contents.hpp"
#include "models/utf8.hpp"

/// @file
/// GGUF, versions 2 and 3, as ggml's docs/gguf.md describes it and as ggml's own reader accepts it.

namespace tensorpool::files {
namespace {

constexpr std::uint64_t magic_bytes = 4;
constexpr std::uint64_t default_alignment = 32;
constexpr std::uint64_t max_alignment = std::uint64_t{1} << 31;
constexpr std::uint64_t max_key_bytes = 65535;
// A length, a key of one byte, a type, and a value of one byte.
constexpr std::uint64_t min_metadata_bytes = 8 + 1 + 4 + 1;

class GgufReader {
public:
    explicit GgufReader(ModelContents& to) : to_(to), in_(to.bytes, to.name) {}

    void run() {
        in_.take(magic_bytes, "magic");
        read_version();
        const std::uint64_t tensors = read_count("tensor count", min_gguf_tensor_bytes);
        const std::uint64_t entries = read_count("metadata count", min_metadata_bytes);
        for (std::uint64_t i = 0; i < entries; ++i) read_metadata(i);
        refuse_duplicates();
        read_gguf_tensors(in_, tensors, alignment_, to_);
    }

private:
    void read_version() {
        constexpr const char* field = "version";
        const auto version = in_.read<std::uint32_t>(field);
        if (version != 0 && (version & 0xffff) == 0) {
            in_.fail_read(field, version,
                          "2 or 3; in the other byte order that is " +
                              std::to_string(version >> 24) +
                              ": the file is big-endian, and only little-endian ones are read");
        }
        if (version != 2 && version != 3) in_.fail_read(field, version, "2 or 3");
        to_.version = version;
    }

    std::uint64_t read_count(const char* field, std::uint64_t min_bytes) {
        const auto count = in_.read<std::uint64_t>(field);
        in_.check_count(count, min_bytes, field);
        if (count > std::numeric_limits<std::uint32_t>::max()) {
            in_.fail_read(field, count, "less than 2^32");
        }
        return count;
    }

    void read_metadata(std::uint64_t index) {
        in_.enter("metadata", index);
        const std::string_view key = read_gguf_string(in_, "key length", "key text");
        const std::uint64_t begin = in_.position() - key.size();
        if (key.empty() || key.size() > max_key_bytes) {
            in_.fail("key length", begin - sizeof(std::uint64_t),
                     "found " + std::to_string(key.size()) + " B, expected 1 to " +
                         std::to_string(max_key_bytes) + " B");
        }
        if (!is_utf8(key)) {
            in_.fail("key text", begin, "found " + in_quotes(key) + ", expected UTF-8");
        }
        in_.call(key);
        const std::uint64_t value_begin = in_.position() + sizeof(std::uint32_t);  // after a type
        to_.metadata.push_back({key, read_gguf_value(in_)});
        if (key == "general.alignment") set_alignment(to_.metadata.back().value, value_begin);
    }

    void set_alignment(const MetadataValue& value, std::uint64_t begin) {
        const auto* const alignment = std::get_if<std::uint64_t>(&value);
        const std::string expected = "expected a power of two below 2^32, as an unsigned number";
        if (alignment == nullptr) in_.fail("value", begin, "found another type, " + expected);
        if (!std::has_single_bit(*alignment) || *alignment > max_alignment) {
            in_.fail("value", begin, "found " + std::to_string(*alignment) + ", " + expected);
        }
        alignment_ = *alignment;
    }

    void refuse_duplicates() {
        if (const auto duplicates = to_.index_metadata()) {
            const std::string_view key = to_.metadata[duplicates->second].key;
            in_.enter("metadata", duplicates->second);
            in_.call(key);
            in_.fail("key text", offset_of(key),
                     "found the key of metadata " + std::to_string(duplicates->first) +
                         " again, expected each key once");
        }
    }

    std::uint64_t offset_of(std::string_view text) const {
        return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(text.data()) -
                                          to_.bytes.data());
    }

    ModelContents& to_;
    ByteReader in_;
    std::uint64_t alignment_ = default_alignment;
};

}  // namespace

void read_gguf(ModelContents& to) {
    to.format = ModelFormat::gguf;
    GgufReader(to).run();
}

}  // namespace tensorpool::files
