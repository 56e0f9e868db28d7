#include <tensorpool/data_type.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <iterator>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tensors/tensor_sizes.hpp"

namespace tensorpool {
namespace {

/// Indexed by DataCode.
constexpr std::string_view names[] = {
    "int",
    "uint",
    "float",
    "opaque",
    "bfloat",
    "complex",
    "bool",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
};
static_assert(std::size(names) == static_cast<std::size_t>(DataCode::float4_e2m1fn) + 1);

std::uint64_t element_bits(const DataType& type) noexcept {
    return std::uint64_t{type.bits} * type.lanes;
}

const tensors::GgmlType* block_type(const DataType& type) noexcept {
    if (type.code != DataCode::ggml_block) return nullptr;
    const tensors::GgmlType* const found = tensors::ggml_type(type.ggml_type);
    return found != nullptr && found->type == type ? found : nullptr;
}

}  // namespace

std::uint64_t DataType::block_elements() const noexcept {
    if (code == DataCode::ggml_block) {
        const tensors::GgmlType* const found = block_type(*this);
        return found == nullptr ? 0 : found->block_elements;
    }
    const std::uint64_t bits_of_all = element_bits(*this);
    return bits_of_all == 0 ? 0 : 8 / std::gcd(bits_of_all, std::uint64_t{8});
}

std::uint64_t DataType::block_bytes() const noexcept {
    if (code == DataCode::ggml_block) {
        const tensors::GgmlType* const found = block_type(*this);
        return found == nullptr ? 0 : found->block_bytes;
    }
    // In this order, or the product of the largest values would not fit.
    const std::uint64_t bits_of_all = element_bits(*this);
    return bits_of_all / std::gcd(bits_of_all, std::uint64_t{8});
}

std::string to_string(const DataType& type) {
    if (type.code == DataCode::ggml_block) {
        const tensors::GgmlType* const found = block_type(type);
        return found != nullptr ? std::string(found->name)
                                : "ggml type " + std::to_string(type.ggml_type);
    }
    if (element_bits(type) == 0) return "none";
    const auto code = static_cast<std::size_t>(type.code);
    std::string text = code < std::size(names) ? std::string(names[code])
                                               : "code " + std::to_string(code) + " of ";
    // The names of other types contain their bits.
    if (type.code < DataCode::boolean || code >= std::size(names))
        text += std::to_string(type.bits);
    if (type.lanes != 1) text.append("x").append(std::to_string(type.lanes));
    return text;
}

namespace tensors {
namespace {

constexpr SafetensorsType named(std::string_view name, DataCode code, std::uint16_t bits) {
    return {name, {.code = code, .bits = bits}};
}

// Names of the format's own library (huggingface/safetensors, safetensors/src/tensor.rs, 2026).
constexpr auto safetensors_types = std::to_array<SafetensorsType>({
    named("F32", DataCode::floating, 32),
    named("F16", DataCode::floating, 16),
    named("BF16", DataCode::bfloat, 16),
    named("F64", DataCode::floating, 64),
    named("BOOL", DataCode::boolean, 8),
    named("U8", DataCode::unsigned_integer, 8),
    named("I8", DataCode::signed_integer, 8),
    named("U16", DataCode::unsigned_integer, 16),
    named("I16", DataCode::signed_integer, 16),
    named("U32", DataCode::unsigned_integer, 32),
    named("I32", DataCode::signed_integer, 32),
    named("U64", DataCode::unsigned_integer, 64),
    named("I64", DataCode::signed_integer, 64),
    named("C64", DataCode::complex, 64),
    named("F8_E5M2", DataCode::float8_e5m2, 8),
    named("F8_E4M3", DataCode::float8_e4m3fn, 8),
    named("F8_E8M0", DataCode::float8_e8m0fnu, 8),
    named("F8_E4M3FNUZ", DataCode::float8_e4m3fnuz, 8),
    named("F8_E5M2FNUZ", DataCode::float8_e5m2fnuz, 8),
    named("F6_E2M3", DataCode::float6_e2m3fn, 6),
    named("F6_E3M2", DataCode::float6_e3m2fn, 6),
    named("F4", DataCode::float4_e2m1fn, 4),
});

}  // namespace

const SafetensorsType* safetensors_type(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(safetensors_types, name, &SafetensorsType::name);
    return found == safetensors_types.end() ? nullptr : found;
}

}  // namespace tensors

std::optional<DataType> find_safetensors_type(std::string_view name) noexcept {
    const tensors::SafetensorsType* const found = tensors::safetensors_type(name);
    return found == nullptr ? std::nullopt : std::optional(found->type);
}

namespace tensors {
namespace {

constexpr auto max_count = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

std::optional<std::uint64_t> product(std::uint64_t one, std::uint64_t other) noexcept {
    if (other != 0 && one > max_count / other) return std::nullopt;
    return one * other;
}

}  // namespace

std::optional<std::uint64_t> count_elements(std::span<const std::uint64_t> shape) noexcept {
    std::uint64_t elements = 1;
    bool empty = false;
    for (const std::uint64_t dimension : shape) {
        empty = empty || dimension == 0;
        const auto more = product(elements, std::max<std::uint64_t>(dimension, 1));
        if (!more) return std::nullopt;
        elements = *more;
    }
    return empty ? 0 : elements;
}

std::optional<std::uint64_t> count_bytes(std::uint64_t elements, const DataType& type) noexcept {
    return product(elements / type.block_elements(), type.block_bytes());
}

}  // namespace tensors

namespace {

[[noreturn]] void refuse(const char* call, const std::string& found, const DataType& type,
                         const std::string& expected) {
    throw std::invalid_argument("tensorpool: " + std::string(call) + ": " + found + " of type " +
                                to_string(type) + ", expected " + expected);
}

std::string text_of(std::span<const std::uint64_t> shape) {
    std::string text;
    for (const std::uint64_t extent : shape) {
        text += (text.empty() ? "" : ", ") + std::to_string(extent);
    }
    return "(" + text + ")";
}

constexpr const char* size_limit = "at most 2^63 - 1 elements and bytes";

void check_blocks(const char* call, const DataType& type, const char* what,
                  std::uint64_t elements) {
    const std::string found = what + std::to_string(elements) + " elements";
    const std::uint64_t block = type.block_elements();
    if (block == 0) refuse(call, found, type, "a type with bytes");
    if (elements % block != 0) {
        refuse(call, found, type, "a multiple of " + std::to_string(block) + ", which is a block");
    }
}

}  // namespace

std::uint64_t row_bytes(const DataType& type, std::uint64_t elements) {
    check_blocks("row_bytes", type, "", elements);
    const auto bytes = tensors::count_bytes(elements, type);
    if (!bytes) refuse("row_bytes", std::to_string(elements) + " elements", type, size_limit);
    return *bytes;
}

std::uint64_t tensor_bytes(const DataType& type, std::span<const std::uint64_t> shape) {
    constexpr const char* call = "tensor_bytes";
    const bool by_row = type.code == DataCode::ggml_block;
    if (by_row) check_blocks(call, type, "rows of ", shape.empty() ? 1 : shape.back());
    const auto elements = tensors::count_elements(shape);
    if (!elements) refuse(call, "shape " + text_of(shape), type, size_limit);
    if (!by_row) check_blocks(call, type, "", *elements);
    const auto bytes = tensors::count_bytes(*elements, type);
    if (!bytes) refuse(call, "shape " + text_of(shape), type, size_limit);
    return *bytes;
}

std::uint64_t tensor_bytes(const DataType& type, std::span<const std::int64_t> shape) {
    std::vector<std::uint64_t> extents;
    extents.reserve(shape.size());
    for (const std::int64_t extent : shape) {
        if (extent < 0) {
            throw std::invalid_argument("tensorpool: tensor_bytes: the extent " +
                                        std::to_string(extent) + ", expected 0 or more");
        }
        extents.push_back(static_cast<std::uint64_t>(extent));
    }
    return tensor_bytes(type, std::span<const std::uint64_t>(extents));
}

}  // namespace tensorpool

namespace tensorpool::tensors {
namespace {

constexpr GgmlType plain(std::string_view name, DataCode code, std::uint16_t bits) {
    return {.name = name, .type = {.code = code, .bits = bits}};
}
constexpr GgmlType blocks(std::string_view name, std::uint8_t number, std::uint16_t elements,
                          std::uint16_t bytes) {
    return {name, {.code = DataCode::ggml_block, .ggml_type = number}, elements, bytes};
}
constexpr GgmlType removed(std::string_view name) {
    return {.name = name, .type = {}};
}

// Indexed by the numbers of `enum ggml_type` (ggml.h, as of 2026, up to number 42). Sizes are those
// of the block structures in ggml-common.h.
constexpr auto types = std::to_array<GgmlType>({
    plain("F32", DataCode::floating, 32),  // 0
    plain("F16", DataCode::floating, 16),  // 1
    blocks("Q4_0", 2, 32, 18),
    blocks("Q4_1", 3, 32, 20),
    removed("Q4_2"),  // 4
    removed("Q4_3"),  // 5
    blocks("Q5_0", 6, 32, 22),
    blocks("Q5_1", 7, 32, 24),
    blocks("Q8_0", 8, 32, 34),
    blocks("Q8_1", 9, 32, 36),
    blocks("Q2_K", 10, 256, 84),
    blocks("Q3_K", 11, 256, 110),
    blocks("Q4_K", 12, 256, 144),
    blocks("Q5_K", 13, 256, 176),
    blocks("Q6_K", 14, 256, 210),
    blocks("Q8_K", 15, 256, 292),
    blocks("IQ2_XXS", 16, 256, 66),
    blocks("IQ2_XS", 17, 256, 74),
    blocks("IQ3_XXS", 18, 256, 98),
    blocks("IQ1_S", 19, 256, 50),
    blocks("IQ4_NL", 20, 32, 18),
    blocks("IQ3_S", 21, 256, 110),
    blocks("IQ2_S", 22, 256, 82),
    blocks("IQ4_XS", 23, 256, 136),
    plain("I8", DataCode::signed_integer, 8),    // 24
    plain("I16", DataCode::signed_integer, 16),  // 25
    plain("I32", DataCode::signed_integer, 32),  // 26
    plain("I64", DataCode::signed_integer, 64),  // 27
    plain("F64", DataCode::floating, 64),        // 28
    blocks("IQ1_M", 29, 256, 56),
    plain("BF16", DataCode::bfloat, 16),  // 30
    removed("Q4_0_4_4"),                  // 31
    removed("Q4_0_4_8"),                  // 32
    removed("Q4_0_8_8"),                  // 33
    blocks("TQ1_0", 34, 256, 54),
    blocks("TQ2_0", 35, 256, 66),
    removed("IQ4_NL_4_4"),  // 36
    removed("IQ4_NL_4_8"),  // 37
    removed("IQ4_NL_8_8"),  // 38
    blocks("MXFP4", 39, 32, 17),
    blocks("NVFP4", 40, 64, 36),
    blocks("Q1_0", 41, 128, 18),
    blocks("Q2_0", 42, 64, 18),
});
static_assert([] {
    for (std::size_t i = 0; i < types.size(); ++i) {
        const DataType& type = types[i].type;
        if (type.code == DataCode::ggml_block && type.ggml_type != i) return false;
    }
    return true;
}());

}  // namespace

const GgmlType* ggml_type(std::uint32_t number) noexcept {
    return number < types.size() ? &types[number] : nullptr;
}

std::uint32_t ggml_type_count() noexcept {
    return types.size();
}

}  // namespace tensorpool::tensors

namespace tensorpool {
namespace {

std::optional<DataType> type_of(const tensors::GgmlType& found) noexcept {
    return found.removed() ? std::nullopt : std::optional(found.type);
}

}  // namespace

std::optional<DataType> find_ggml_type(std::uint32_t number) noexcept {
    const tensors::GgmlType* const found = tensors::ggml_type(number);
    return found == nullptr ? std::nullopt : type_of(*found);
}

std::optional<DataType> find_ggml_type(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(tensors::types, name, &tensors::GgmlType::name);
    return found == tensors::types.end() ? std::nullopt : type_of(*found);
}

namespace {

// NumPy stores the size of an element in an int.
constexpr std::uint32_t max_bytes = std::numeric_limits<std::int32_t>::max();

/// Bytes of a character in NumPy's text type (kind U).
constexpr std::uint32_t character_bytes = 4;

/// A kind of numbers or times.
struct Kind {
    char letter;
    DataCode code;
    std::array<std::uint8_t, 5> sizes;  // in bytes; the others are 0
};

/// 12 and 24 bytes are the sizes of long double on i386, single and as a complex number.
constexpr Kind kinds[] = {{'b', DataCode::boolean, {1}},
                          {'i', DataCode::signed_integer, {1, 2, 4, 8}},
                          {'u', DataCode::unsigned_integer, {1, 2, 4, 8}},
                          {'f', DataCode::floating, {2, 4, 8, 12, 16}},
                          {'c', DataCode::complex, {8, 16, 24, 32}},
                          {'m', DataCode::opaque, {8}},
                          {'M', DataCode::opaque, {8}}};

bool is_native(char order) noexcept {
    return order == '|' || (order == '<') == (std::endian::native == std::endian::little);
}

/// Returns whether `text` may follow the size: the unit of a time, as in "<M8[ns]".
bool is_unit(char kind, std::string_view text) noexcept {
    if (text.empty()) return true;
    return (kind == 'm' || kind == 'M') && text.size() > 2 && text.front() == '[' &&
           text.find(']') == text.size() - 1;
}

/// Returns the type of a text of so many characters, or of so many bytes.
std::optional<DataType> text_type(char kind, std::uint32_t count) noexcept {
    const std::uint32_t bytes = kind == 'U' ? character_bytes : 1;
    if (count < 1 || count > max_bytes / bytes) return std::nullopt;
    return DataType{
        .code = DataCode::opaque, .bits = static_cast<std::uint16_t>(8 * bytes), .lanes = count};
}

}  // namespace

std::optional<DataType> find_numpy_type(std::string_view descr) noexcept {
    if (descr.size() < 3) return std::nullopt;
    const char order = descr[0];
    const char kind = descr[1];
    if (order != '<' && order != '>' && order != '|') return std::nullopt;
    std::uint32_t size = 0;
    const char* const end = descr.data() + descr.size();
    const auto [rest, error] = std::from_chars(descr.data() + 2, end, size);
    if (error != std::errc() || !is_unit(kind, {rest, static_cast<std::size_t>(end - rest)}))
        return std::nullopt;
    if (kind == 'S' || kind == 'U' || kind == 'V') return text_type(kind, size);
    const auto* const found = std::ranges::find(kinds, kind, &Kind::letter);
    if (found == std::end(kinds) || size == 0 ||
        std::ranges::find(found->sizes, size) == found->sizes.end()) {
        return std::nullopt;
    }
    return DataType{.code = is_native(order) ? found->code : DataCode::opaque,
                    .bits = static_cast<std::uint16_t>(8 * size)};
}

}  // namespace tensorpool
