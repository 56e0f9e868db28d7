#include "models/gguf/gguf_metadata.hpp"

#include <algorithm>
#include <array>

namespace tensorpool::files {
namespace {

/// The limit for arrays of arrays. No known writer nests them even once.
constexpr unsigned max_depth = 8;
/// Bytes of an array's head: the type of its elements, and their number.
constexpr std::uint64_t head_bytes = 12;
constexpr std::uint64_t length_bytes = 8;

GgufValue read_type(ByteReader& in, Field field) {
    const auto type = in.read<std::uint32_t>(field);
    if (type >= gguf_value_types) {
        in.fail_read(field, type, "a type below " + std::to_string(gguf_value_types));
    }
    return static_cast<GgufValue>(type);
}

bool read_bool(ByteReader& in, Field field) {
    const auto value = in.read<std::uint8_t>(field);
    if (value > 1) in.fail_read(field, value, "0 or 1");
    return value != 0;
}

struct Head {
    GgufValue type;
    std::uint64_t count;
};

Head read_head(ByteReader& in) {
    const GgufValue type = read_type(in, "element type");
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
    const std::uint64_t bytes = gguf_value_type(head.type).bytes;
    const bool is_array = head.type == GgufValue::array;
    in.check_count(head.count,
                   bytes != 0 ? bytes
                   : is_array ? head_bytes
                              : length_bytes,
                   "element count");
    if (is_array) return walk_arrays(in, head.count, depth);
    if (head.type == GgufValue::boolean) {
        for (std::uint64_t i = 0; i < head.count; ++i) read_bool(in, {"element", i});
    } else if (head.type == GgufValue::string) {
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
    return {gguf_value_type(head.type).name, head.count,
            again.take(in.position() - begin.position(), "elements")};
}

}  // namespace

std::string_view read_gguf_string(ByteReader& in, Field length, Field text) {
    const auto bytes = in.read<std::uint64_t>(length);
    in.check_count(bytes, 1, length);
    return in.take_text(bytes, text);
}

MetadataValue read_gguf_value(ByteReader& in) {
    constexpr const char* value = "value";
    switch (read_type(in, "type")) {
        case GgufValue::u8:
            return std::uint64_t{in.read<std::uint8_t>(value)};
        case GgufValue::u16:
            return std::uint64_t{in.read<std::uint16_t>(value)};
        case GgufValue::u32:
            return std::uint64_t{in.read<std::uint32_t>(value)};
        case GgufValue::u64:
            return in.read<std::uint64_t>(value);
        case GgufValue::i8:
            return std::int64_t{in.read<std::int8_t>(value)};
        case GgufValue::i16:
            return std::int64_t{in.read<std::int16_t>(value)};
        case GgufValue::i32:
            return std::int64_t{in.read<std::int32_t>(value)};
        case GgufValue::i64:
            return in.read<std::int64_t>(value);
        case GgufValue::f32:
            return double{in.read<float>(value)};
        case GgufValue::f64:
            return in.read<double>(value);
        case GgufValue::boolean:
            return read_bool(in, value);
        case GgufValue::string:
            return read_gguf_string(in, "length", "text");
        case GgufValue::array:
            return read_array(in);
    }
    return {};  // not reached: read_type rejects other types
}

namespace {

// Indexed by their numbers, from ggml's docs/gguf.md.
constexpr auto value_types = std::to_array<GgufValueType>({
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
static_assert(value_types.size() == gguf_value_types);

}  // namespace

const GgufValueType& gguf_value_type(GgufValue type) noexcept {
    return value_types[static_cast<std::size_t>(type)];
}

}  // namespace tensorpool::files
