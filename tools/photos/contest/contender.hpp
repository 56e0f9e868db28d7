#pragma once

/// @file
/// What is compared: where the pictures' memory comes from.

#include <string>
#include <vector>

namespace tensorpool::photos {

struct Contender {
    std::string name;     ///< as the table and the folder of its results are called
    std::string work;     ///< `malloc`, `pool` or `context`: what its processes are told
    std::string preload;  ///< the library that serves malloc in them; empty: the C library
};

/// malloc first, which the others are compared with; tcmalloc where a process of this program that
/// is told to preload it really does; the pool; a Context.
std::vector<Contender> find_contenders();

/// The library that is looked for, and the Debian package that has it.
inline constexpr const char* tcmalloc_library = "libtcmalloc_minimal.so.4";
inline constexpr const char* tcmalloc_package = "libtcmalloc-minimal4";

}  // namespace tensorpool::photos
