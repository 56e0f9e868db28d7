#pragma once

// Shared by the programs of tests/interpose. They run with the library in LD_PRELOAD and link
// nothing of tensorpool.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include <tensorpool/detail/address_range.hpp>

namespace tensorpool::testing {

inline int failures = 0;

inline void expect(bool holds, const char* what, std::size_t value = 0,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (holds) return;
    ++failures;
    std::fprintf(stderr, "%s:%d: expected %s (%zu)\n", file, line, what, value);
}

/// Hides a value from the optimizer, which knows the meaning of malloc.
template <class T>
T hidden(T value) {
    asm volatile("" : "+r"(value) : : "memory");
    return value;
}

/// Returns whether a line of this process's memory map contains `text`.
inline bool maps_have(const char* text) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find(text) != std::string::npos) return true;
    }
    return false;
}

/// Ends the program if the library is not loaded: a wrong path in LD_PRELOAD would test the C
/// library.
inline void expect_interposed() {
    if (maps_have("libtensorpool_interpose")) return;
    std::fputs("libtensorpool_interpose is not in this process: see LD_PRELOAD\n", stderr);
    std::_Exit(2);
}

/// Returns whether `p` is within the address range that the library exports.
inline bool is_of_pool(const void* p) {
    static const auto* const range = static_cast<const detail::AddressRange*>(
        dlsym(RTLD_DEFAULT, "_ZN10tensorpool6detail5abi_214pool_addressesE"));
    return range != nullptr && range->contains(p);
}

/// The functions of C23, which the C library of Debian 12 does not have.
inline void free_sized(void* p, std::size_t bytes) {
    static const auto function =
        reinterpret_cast<void (*)(void*, std::size_t)>(dlsym(RTLD_DEFAULT, "free_sized"));
    function(p, bytes);
}
inline void free_aligned_sized(void* p, std::size_t alignment, std::size_t bytes) {
    static const auto function = reinterpret_cast<void (*)(void*, std::size_t, std::size_t)>(
        dlsym(RTLD_DEFAULT, "free_aligned_sized"));
    function(p, alignment, bytes);
}

/// Returns the minimum that the test has set, in bytes.
inline std::size_t minimum() {
    const char* const text = std::getenv("TENSORPOOL_INTERPOSE_MIN");
    return text == nullptr ? 65'536 : std::strtoull(text, nullptr, 10);
}

inline unsigned char pattern_of(std::size_t seed, std::size_t at) {
    return static_cast<unsigned char>(seed * 31 + at * 7 + (at >> 8));
}
inline void fill(void* p, std::size_t bytes, std::size_t seed) {
    auto* const to = static_cast<unsigned char*>(p);
    for (std::size_t i = 0; i < bytes; ++i) to[i] = pattern_of(seed, i);
}
inline bool is_filled(const void* p, std::size_t bytes, std::size_t seed) {
    const auto* const from = static_cast<const unsigned char*>(p);
    for (std::size_t i = 0; i < bytes; ++i) {
        if (from[i] != pattern_of(seed, i)) return false;
    }
    return true;
}

}  // namespace tensorpool::testing
