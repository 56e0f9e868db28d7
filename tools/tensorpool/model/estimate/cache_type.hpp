#pragma once

/// @file
/// The element types of a key-value cache, with the names of llama.cpp's --cache-type-k.

#include <cstdint>
#include <string>
#include <string_view>

namespace tensorpool::command::model {

/// A type with blocks of `elements` elements in `bytes` bytes, as in ggml.
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

/// Returns the type of this name, or nullptr if there is none.
constexpr const CacheType* find_cache_type(std::string_view name) noexcept {
    for (const CacheType& type : cache_types) {
        if (type.name == name) return &type;
    }
    return nullptr;
}

/// Returns all names: "f32, f16, …".
std::string cache_type_names();
/// Returns an error message if there is no type of this name, else "". A validator for CLI11.
std::string problem_of_cache_type(const std::string& name);

}  // namespace tensorpool::command::model
