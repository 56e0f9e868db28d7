#pragma once

#include <tensorpool/tensorpool_arena.h>
#include <tensorpool/arena.hpp>

namespace tensorpool::adaptors {

/// Converts the options of the C interface; nullptr means all defaults. Throws
/// std::invalid_argument for a size that is not that of any version of the struct, for a value
/// outside its enumeration, and for a set field that this version does not know.
ArenaOptions to_arena_options(const tensorpool_arena_options* options);

/// Returns the caller's buffer. Throws std::invalid_argument if it is nullptr and has bytes.
std::span<std::byte> to_buffer(void* buffer, std::size_t bytes);

}  // namespace tensorpool::adaptors
