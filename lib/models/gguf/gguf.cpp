#include <array>

#include "base/alignment.hpp"
#include "models/model_contents.hpp"

/// @file
/// GGUF, versions 2 and 3, as ggml's docs/gguf.md describes it and as ggml's own reader accepts it.

namespace tensorpool::files {
namespace {

enum class Type : std::uint32_t {
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    f32,
    boolean,
    string,
    array,
    u64,
    i64,
    f64,
};

/// A type of metadata. `bytes` is 0 for strings and arrays, which contain their own length.
struct TypeTraits {
    std::string_view name;
    std::uint8_t bytes;
};

// Indexed by their numbers, from ggml's docs/gguf.md.
constexpr auto types = std::to_array<TypeTraits>({
    {"u8", 1},
    {"i8", 1},
    {"u16", 2},
    {"i16", 2},
    {"u32", 4},
    {"i32", 4},
    {"f32", 4},
    {"bool", 1},
    {"string", 0},
    {"array", 0},
    {"u64", 8},
    {"i64", 8},
    {"f64", 8},
});

constexpr const TypeTraits& traits_of(Type type) noexcept {
    return types[static_cast<std::size_t>(type)];
}

/// The limit for arrays of arrays. No known writer nests them even once.
constexpr unsigned max_depth = 8;
/// Bytes of an array's head: the type of its elements, and their number.
constexpr std::uint64_t head_bytes = 12;
constexpr std::uint64_t length_bytes = 8;

Type read_type(ByteReader& in, Field field) {
    const auto type = in.read<std::uint32_t>(field);
    if (type >= types.size()) {
        in.fail_read(field, type, "a type below " + std::to_string(types.size()));
    }
    return static_cast<Type>(type);
}

bool read_bool(ByteReader& in, Field field) {
    const auto value = in.read<std::uint8_t>(field);
    if (value > 1) in.fail_read(field, value, "0 or 1");
    return value != 0;
}

std::string_view read_gguf_string(ByteReader& in, Field length, Field text) {
    const auto bytes = in.read<std::uint64_t>(length);
    in.check_count(bytes, 1, length);
    return in.take_text(bytes, text);
}

struct Head {
    Type type;
    std::uint64_t count;
};

Head read_head(ByteReader& in) {
    const Type type = read_type(in, "element type");
    return {type, in.read<std::uint64_t>("element count")};
}

void walk(ByteReader& in, const Head& head, unsigned depth);

void walk_arrays(ByteReader& in, std::uint64_t count, unsigned depth) {
    if (depth == max_depth) {
        in.fail("element type", in.position() - head_bytes,
                "found arrays nested deeper than " + std::to_string(max_depth) +
                    ", expected at most that");
    }
    for (std::uint64_t i = 0; i < count; ++i) walk(in, read_head(in), depth + 1);
}

/// Checks all elements of an array and moves past them.
void walk(ByteReader& in, const Head& head, unsigned depth) {
    const std::uint64_t bytes = traits_of(head.type).bytes;
    const bool is_array = head.type == Type::array;
    in.check_count(head.count,
                   bytes != 0 ? bytes
                   : is_array ? head_bytes
                              : length_bytes,
                   "element count");
    if (is_array) return walk_arrays(in, head.count, depth);
    if (head.type == Type::boolean) {
        for (std::uint64_t i = 0; i < head.count; ++i) read_bool(in, {"element", i});
    } else if (head.type == Type::string) {
        for (std::uint64_t i = 0; i < head.count; ++i) {
            read_gguf_string(in, {"length of element", i}, {"text of element", i});
        }
    } else {
        in.take(head.count * bytes, "elements");
    }
}

MetadataArray read_array(ByteReader& in) {
    const Head head = read_head(in);
    const ByteReader begin = in;
    walk(in, head, 1);
    ByteReader again = begin;
    return {traits_of(head.type).name, head.count,
            again.take(in.position() - begin.position(), "elements")};
}

/// Reads a metadata value, preceded by its type. Arrays are checked, but not unpacked.
MetadataValue read_gguf_value(ByteReader& in) {
    constexpr const char* value = "value";
    switch (read_type(in, "type")) {
        case Type::u8:
            return std::uint64_t{in.read<std::uint8_t>(value)};
        case Type::u16:
            return std::uint64_t{in.read<std::uint16_t>(value)};
        case Type::u32:
            return std::uint64_t{in.read<std::uint32_t>(value)};
        case Type::u64:
            return in.read<std::uint64_t>(value);
        case Type::i8:
            return std::int64_t{in.read<std::int8_t>(value)};
        case Type::i16:
            return std::int64_t{in.read<std::int16_t>(value)};
        case Type::i32:
            return std::int64_t{in.read<std::int32_t>(value)};
        case Type::i64:
            return in.read<std::int64_t>(value);
        case Type::f32:
            return double{in.read<float>(value)};
        case Type::f64:
            return in.read<double>(value);
        case Type::boolean:
            return read_bool(in, value);
        case Type::string:
            return read_gguf_string(in, "length", "text");
        case Type::array:
            return read_array(in);
    }
    return {};  // not reached: read_type rejects other types
}

/// The least that the description of a tensor takes: the length of its name, a number of
/// dimensions, a type, and an offset.
constexpr std::uint64_t min_gguf_tensor_bytes = 8 + 4 + 4 + 8;

constexpr std::size_t max_ggml_dimensions = 4;
// More than any model has. A hostile count in a huge file must not reserve as much memory again.
constexpr std::uint64_t reserved_tensors = 1 << 20;

class Tensors {
public:
    Tensors(ByteReader& in, std::uint64_t alignment, ModelContents& to)
        : in_(in), alignment_(alignment), to_(to) {}

    /// Reads the descriptions of `count` tensors, and computes the positions of the tensors in the
    /// data that follows.
    void read(std::uint64_t count) {
        to_.tensors.reserve(std::min(count, reserved_tensors));
        for (std::uint64_t i = 0; i < count; ++i) read_tensor(i);
        in_.leave();
        refuse_duplicates();
        place_all();
    }

private:
    void read_tensor(std::uint64_t index) {
        in_.enter("tensor", index);
        const std::string_view name = read_gguf_string(in_, "name length", "name text");
        if (!is_utf8(name)) {
            in_.fail("name text", to_.offset_of(name),
                     "found " + in_quotes(name) + ", expected UTF-8");
        }
        in_.call(name);
        std::array<std::uint64_t, max_ggml_dimensions> dimensions;
        const std::size_t count = read_dimensions(dimensions);
        const std::span<const std::uint64_t> shape(dimensions.end() - count, count);
        ModelTensor tensor{.name = name, .type = read_type(), .shape = to_.shapes.add(shape)};
        tensor.bytes = bytes_of(tensor);
        tensor.offset = in_.read<std::uint64_t>("offset");
        if (!base::is_aligned(tensor.offset, alignment_)) {
            in_.fail_read("offset", tensor.offset,
                          "a multiple of the alignment, " + std::to_string(alignment_) + " B");
        }
        to_.tensors.push_back(tensor);
    }

    /// Reads the dimensions to the end of `to`, in reverse order: the file has the fastest one
    /// first.
    std::size_t read_dimensions(std::array<std::uint64_t, max_ggml_dimensions>& to) {
        constexpr const char* field = "dimension count";
        const auto count = in_.read<std::uint32_t>(field);
        if (count > max_ggml_dimensions) {
            in_.fail_read(field, count, "at most " + std::to_string(max_ggml_dimensions));
        }
        for (std::size_t i = 0; i < count; ++i) {
            to[max_ggml_dimensions - 1 - i] = in_.read<std::uint64_t>({"dimension", i});
        }
        return count;
    }

    ElementType read_type() {
        const auto number = in_.read<std::uint32_t>("type");
        const tensors::GgmlType* const found = tensors::ggml_type(number);
        if (found == nullptr) {
            in_.fail_read("type", number,
                          "a type of ggml, below " + std::to_string(tensors::ggml_type_count()));
        }
        if (found->removed()) {
            in_.fail_read("type", number,
                          "a type that ggml still has: " + std::string(found->name) +
                              " was removed from it, so quantise the model again");
        }
        return {found->name, found->type};
    }

    /// Must be called directly after the type was read, which follows the dimensions.
    std::uint64_t bytes_of(const ModelTensor& tensor) const {
        const std::size_t count = tensor.shape.size();
        const std::uint64_t first_dimension = in_.position() - sizeof(std::uint32_t) - 8 * count;
        const std::uint64_t row = count == 0 ? 1 : tensor.shape.back();
        const std::uint64_t block = tensor.type.data.block_elements();
        if (row % block != 0) {
            in_.fail({"dimension", std::uint64_t{0}}, first_dimension,
                     "found rows of " + std::to_string(row) + " elements, expected a multiple of " +
                         std::to_string(block) + ", a block of " + std::string(tensor.type.name));
        }
        return tensor_bytes(in_, tensor.shape, tensor.type.data, {"dimension", std::uint64_t{0}},
                            first_dimension, "dimensions");
    }

    void refuse_duplicates() {
        const auto duplicates = to_.index_tensors();
        if (!duplicates) return;
        const std::string_view name = to_.tensors[duplicates->second].name;
        in_.fail_duplicate("tensor", duplicates->second, name, duplicates->first, "name",
                           "name text", to_.offset_of(name));
    }

    /// Returns the position from which the file's offsets count. It may lie behind the end of the
    /// file if there is no data.
    std::uint64_t data_begin() const { return base::align_up(in_.position(), alignment_); }

    void place_all() {
        const std::uint64_t begin = data_begin();
        const std::uint64_t there = to_.bytes.size() > begin ? to_.bytes.size() - begin : 0;
        for (ModelTensor& tensor : to_.tensors) {
            if (tensor.offset > there || tensor.bytes > there - tensor.offset) {
                fail_beyond(tensor, begin, there);
            }
            tensor.offset += begin;
        }
        visit_by_offset(to_.tensors, [this](std::size_t number, std::size_t previous) {
            if (number != previous) check_apart(to_.tensors[previous], to_.tensors[number]);
        });
    }

    void check_apart(const ModelTensor& previous, const ModelTensor& tensor) {
        if (previous.offset + previous.bytes <= tensor.offset) return;
        call(tensor);
        in_.fail("offset", offset_field(tensor),
                 "found " + std::to_string(tensor.offset - data_begin()) + ", expected at least " +
                     std::to_string(previous.offset + previous.bytes - data_begin()) +
                     ", where tensor " + in_quotes(previous.name) + " ends");
    }

    [[noreturn]] void fail_beyond(const ModelTensor& tensor, std::uint64_t begin,
                                  std::uint64_t there) {
        call(tensor);
        in_.fail("offset", offset_field(tensor),
                 "found " + std::to_string(tensor.offset) + ", where " +
                     std::to_string(tensor.bytes) + " B should be, expected them within the " +
                     std::to_string(there) + " B from the data's beginning at " +
                     std::to_string(begin) + " to the file's end");
    }

    void call(const ModelTensor& tensor) {
        in_.enter("tensor", static_cast<std::uint64_t>(&tensor - to_.tensors.data()));
        in_.call(tensor.name);
    }

    /// The name is followed by the number of dimensions, the dimensions and the type.
    std::uint64_t offset_field(const ModelTensor& tensor) const {
        return to_.offset_of(tensor.name) + tensor.name.size() + 4 + 8 * tensor.shape.size() + 4;
    }

    ByteReader& in_;
    const std::uint64_t alignment_;
    ModelContents& to_;
};

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
        Tensors(in_, alignment_, to_).read(tensors);
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
        const auto duplicates = to_.index_metadata();
        if (!duplicates) return;
        const std::string_view key = to_.metadata[duplicates->second].key;
        in_.fail_duplicate("metadata", duplicates->second, key, duplicates->first, "key",
                           "key text", to_.offset_of(key));
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
