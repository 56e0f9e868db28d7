#include "tensors/tensor_sizes.hpp"

#include <algorithm>
#include <array>

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

}  // namespace tensorpool
