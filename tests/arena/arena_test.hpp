#pragma once

#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace tensorpool::testing {

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;
inline constexpr std::size_t gib = 1024 * mib;

/// Options without surplus and initial capacity: the capacity is what was needed.
inline ArenaOptions bare_options() {
    return {.name = "mine",
            .initial_capacity = 0,
            .max_capacity = 64 * mib,
            .max_allocation = gib,
            .growth = {.step = 0, .factor = 0.0, .fraction = 0.75},
            .retain = SIZE_MAX};
}

/// Writes a pattern that depends on the seed.
inline void write_pattern(void* block, std::size_t bytes, std::uint64_t seed) {
    auto* const at = static_cast<unsigned char*>(block);
    for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<unsigned char>(seed * 131 + i * 7);
}
inline bool holds(const void* block, std::size_t bytes, std::uint64_t seed) {
    const auto* const at = static_cast<const unsigned char*>(block);
    for (std::size_t i = 0; i < bytes; ++i) {
        if (at[i] != static_cast<unsigned char>(seed * 131 + i * 7)) return false;
    }
    return true;
}

/// Returns the message of the `Error` that `call` throws; "" if it does not throw one.
template <class Error, class Call>
std::string message_of(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

/// The values that a failed call must not change.
struct ArenaUsage {
    explicit ArenaUsage(const Arena& arena)
        : used(arena.used()), peak(arena.peak()), capacity(arena.capacity()) {}
    bool operator==(const ArenaUsage&) const = default;

    std::size_t used, peak, capacity;
};

}  // namespace tensorpool::testing
