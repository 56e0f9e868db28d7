#include "models/gguf/gguf_types.hpp"

#include <array>
#include <cstddef>

namespace tensorpool::files {
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
