#include <tensorpool/model_estimate.hpp>

#include <algorithm>

namespace tensorpool {
namespace {

constexpr DataType block_type(std::uint8_t number) noexcept {
    return {.code = DataCode::ggml_block, .ggml_type = number};
}

// Those of llama.cpp's --cache-type-k, with the numbers of ggml.
constexpr KvCacheType types[] = {
    {"f32", DataType::of<float>()},
    {"f16", {.code = DataCode::floating, .bits = 16}},
    {"bf16", {.code = DataCode::bfloat, .bits = 16}},
    {"q8_0", block_type(8)},
    {"q5_1", block_type(7)},
    {"q5_0", block_type(6)},
    {"q4_1", block_type(3)},
    {"q4_0", block_type(2)},
    {"iq4_nl", block_type(20)},
};

}  // namespace

std::span<const KvCacheType> kv_cache_types() noexcept {
    return types;
}

const KvCacheType* find_kv_cache_type(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(types, name, &KvCacheType::name);
    return found == std::end(types) ? nullptr : found;
}

}  // namespace tensorpool
