#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include <tensorpool/scratch.hpp>
#include <tensorpool/scratch_report.hpp>

namespace tensorpool::testing {

inline constexpr std::size_t kib = std::size_t{1} << 10;
inline constexpr std::size_t mib = std::size_t{1} << 20;
inline constexpr std::size_t gib = std::size_t{1} << 30;

/// Runs `function` in a new thread, which has a new scratch.
template <class Function>
void in_new_thread(Function function) {
    std::thread(function).join();
}

inline bool is_aligned(const void* p, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

/// Returns a byte that depends on the seed and differs from its neighbours.
inline unsigned char pattern(std::size_t seed, std::size_t i) {
    return static_cast<unsigned char>(seed * 31 + i * 7 + (i >> 8));
}
inline void* fill(void* block, std::size_t bytes, std::size_t seed) {
    for (std::size_t i = 0; i < bytes; ++i)
        static_cast<unsigned char*>(block)[i] = pattern(seed, i);
    return block;
}
inline bool is_filled(const void* block, std::size_t bytes, std::size_t seed) {
    for (std::size_t i = 0; i < bytes; ++i) {
        if (static_cast<const unsigned char*>(block)[i] != pattern(seed, i)) return false;
    }
    return true;
}

/// Returns the statistics of an operator; without calls if it never ran.
inline OperatorScratch operator_named(std::string_view name) {
    const ScratchReport report = scratch_report();
    const auto found = std::find_if(report.operators.begin(), report.operators.end(),
                                    [&](const OperatorScratch& one) { return one.name == name; });
    return found != report.operators.end() ? *found : OperatorScratch{};
}

}  // namespace tensorpool::testing
