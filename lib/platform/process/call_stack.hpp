#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

/// Return addresses of the calling thread, innermost first; how many were found. Neither allocates
/// nor takes a lock of ours; the first call of a process may take one of the loader's.
std::size_t capture_stack(std::uintptr_t* frames, std::size_t most) noexcept;

/// Where code comes from.
struct CodeOrigin {
    const char* path = nullptr;  // of the file that was loaded; nullptr: no file's code
    std::uint64_t offset = 0;    // as the file's symbols count
};
/// Lives as long as the code stays loaded. Takes the loader's lock only where the C library cannot
/// do without (glibc before 2.35).
CodeOrigin find_code(std::uintptr_t address) noexcept;

}  // namespace tensorpool::platform
