#pragma once

/// @file
/// The allocators to be compared: where the memory of the pictures comes from.

#include <string>
#include <vector>

namespace tensorpool::photos {

struct ComparedAllocator {
    std::string name;     ///< its name in the table, and of its results folder
    std::string work;     ///< `malloc`, `pool` or `context`: the value of --work
    std::string preload;  ///< the library that provides malloc; empty: the C library
};

/// Returns malloc first, to which the others are compared, then tcmalloc if a process of this
/// program can preload it, the pool, and a Context.
std::vector<ComparedAllocator> find_allocators();

/// The library of tcmalloc, and its Debian package.
inline constexpr const char* tcmalloc_library = "libtcmalloc_minimal.so.4";
inline constexpr const char* tcmalloc_package = "libtcmalloc-minimal4";

}  // namespace tensorpool::photos
