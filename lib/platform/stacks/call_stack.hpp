#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

/// Stores up to `max` return addresses of the calling thread in `frames`, innermost first and each
/// less 1, and returns how many were found. Where `slots` is given, stores there where on the stack
/// each of them should lie, or nullptr, as for a function that a signal interrupted. Neither
/// allocates nor takes a lock of this library.
///
/// On Linux with glibc 2.35 or later and x86-64, it takes no lock at all and survives every stack:
/// it ends at an address that is not code of a loaded file, and at a page that cannot be read.
/// Elsewhere, return addresses are trusted, and the first call may take a lock of the loader.
std::size_t capture_stack(std::uintptr_t* frames, std::size_t max,
                          const std::uintptr_t** slots = nullptr) noexcept;

/// The file that a code address belongs to.
struct CodeOrigin {
    const char* path = nullptr;  // of the file that was loaded; nullptr if the code is in no file
    std::uint64_t offset = 0;    // offset in the file, as its symbols count
};
/// Finds the file of a code address. The path is valid while the code stays loaded. Takes the
/// loader's lock only if the C library requires it (glibc before 2.35).
CodeOrigin find_code(std::uintptr_t address) noexcept;

}  // namespace tensorpool::platform
