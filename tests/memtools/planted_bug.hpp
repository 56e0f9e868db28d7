#pragma once

#include <cstddef>
#include <cstdio>
#include <span>

namespace tensorpool::testing {

/// A bug that a program contains on purpose, and a part of what each tool must print about it.
/// nullptr: the tool cannot see the bug by its design.
struct PlantedBug {
    const char* name;
    void (*run)();
    const char* asan;
    const char* msan;
    const char* memcheck;
};

// What the tools print.
inline constexpr const char* asan_access = "AddressSanitizer: use-after-poison";
inline constexpr const char* msan_undefined = "MemorySanitizer: use-of-uninitialized-value";
inline constexpr const char* memcheck_read = "Invalid read of size";
inline constexpr const char* memcheck_write = "Invalid write of size";
inline constexpr const char* memcheck_undefined = "depends on uninitialised value";
inline constexpr const char* memcheck_free = "Invalid free()";
// What the pool prints because a tool is present.
inline constexpr const char* pool_double_free = "tensorpool: fatal: double-free";
inline constexpr const char* pool_wrong_size = "tensorpool: fatal: wrong-size";

/// A bug that only writes: MemorySanitizer watches reads.
constexpr PlantedBug bad_write(const char* name, void (*run)()) {
    return {name, run, asan_access, nullptr, memcheck_write};
}
/// A bug that reads bytes that are no part of a block: for MemorySanitizer they are undefined.
constexpr PlantedBug bad_read(const char* name, void (*run)()) {
    return {name, run, asan_access, msan_undefined, memcheck_read};
}
/// A bug that depends on bytes of a block that were never written. AddressSanitizer does not watch
/// values.
constexpr PlantedBug undefined(const char* name, void (*run)()) {
    return {name, run, nullptr, msan_undefined, memcheck_undefined};
}

std::span<const PlantedBug> bugs_with_pools() noexcept;
std::span<const PlantedBug> bugs_with_arenas() noexcept;
std::span<const PlantedBug> bugs_with_adaptors() noexcept;
/// Uses pools, arenas, scratches and adaptors correctly; no tool may print anything.
void use_correctly();

// The compiler must neither see what these do nor remove them.

/// Depends on the byte at `p + at`.
[[gnu::noinline]] inline void read(const void* p, std::ptrdiff_t at) {
    const volatile unsigned char* const bytes = static_cast<const volatile unsigned char*>(p);
    if (bytes[at] == 77) std::fputs("read 77\n", stdout);
}
/// Writes the byte at `p + at`.
[[gnu::noinline]] inline void write(void* p, std::ptrdiff_t at) {
    static_cast<volatile unsigned char*>(p)[at] = 1;
}

}  // namespace tensorpool::testing
