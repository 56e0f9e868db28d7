#pragma once

/// @file
/// Conversions between the handles of <tensorpool/tensorpool_arena.h>, whose types are incomplete
/// in C, and the objects that they are.

#include <tensorpool/tensorpool_arena.h>
#include <tensorpool/arena.hpp>
#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/scratch.hpp>

#include "adaptors/c_calls.hpp"
#include "adaptors/sized_struct.hpp"

namespace tensorpool::adaptors {

inline tensorpool_arena* to_handle(Arena* arena) noexcept {
    return reinterpret_cast<tensorpool_arena*>(arena);
}
inline tensorpool_scratch* to_handle(Scratch* scratch) noexcept {
    return reinterpret_cast<tensorpool_scratch*>(scratch);
}

/// Fills in a caller's struct with what `read` returns. Throws std::invalid_argument if the pointer
/// is NULL or the size is not that of any version of the struct.
template <class Read>
void fill_in(tensorpool_arena_statistics* statistics, Read read) {
    constexpr std::size_t first_version_bytes = offsetof(tensorpool_arena_statistics, refusals) +
                                                sizeof(tensorpool_arena_statistics::refusals);
    fill_in(statistics, "statistics", "tensorpool_arena_statistics", first_version_bytes, [&] {
        const ArenaStatistics from = read();
        return tensorpool_arena_statistics{.struct_bytes = sizeof(tensorpool_arena_statistics),
                                           .used_bytes = from.used_bytes,
                                           .peak_used_bytes = from.peak_used_bytes,
                                           .capacity_bytes = from.capacity_bytes,
                                           .peak_capacity_bytes = from.peak_capacity_bytes,
                                           .reserved_bytes = from.reserved_bytes,
                                           .limit_bytes = from.limit_bytes,
                                           .growths = from.growths,
                                           .grown_bytes = from.grown_bytes,
                                           .give_backs = from.give_backs,
                                           .given_back_bytes = from.given_back_bytes,
                                           .refusals = from.refusals,
                                           .allocations = from.allocations,
                                           .releases = from.releases};
    });
}

}  // namespace tensorpool::adaptors
