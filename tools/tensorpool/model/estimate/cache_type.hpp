#pragma once

/// @file
/// How the elements of a key-value cache are stored, in the words of llama.cpp's --cache-type-k.

#include <cstdint>
#include <string>
#include <string_view>

namespace tensorpool::command::model {

/// `elements` in a block of `bytes`, as ggml's types of these names have them.
struct CacheType {
    std::string_view name;
    std::uint32_t elements = 1;
    std::uint32_t bytes = 0;
    bool quantised() const noexcept { return elements > 1; }
};

inline constexpr CacheType cache_types[] = {
    {"f32", 1, 4},    {"f16", 1, 2},    {"bf16", 1, 2},   {"q8_0", 32, 34},   {"q5_1", 32, 24},
    {"q5_0", 32, 22}, {"q4_1", 32, 20}, {"q4_0", 32, 18}, {"iq4_nl", 32, 18},
};

/// nullptr where there is none of that name.
constexpr const CacheType* find_cache_type(std::string_view name) noexcept {
    for (const CacheType& type : cache_types) {
        if (type.name == name) return &type;
    }
    return nullptr;
}

/// "f32, f16, …".
std::string cache_type_names();
/// For CLI11: why it is none, or "".
std::string problem_of_cache_type(const std::string& name);

}  // namespace tensorpool::command::model
