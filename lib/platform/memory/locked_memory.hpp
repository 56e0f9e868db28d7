#pragma once

#include <cstddef>
#include <string_view>

namespace tensorpool::platform {

/// The flags of a call of mlockall(2).
struct LockAll {
    bool present = false;       // the present mappings (MCL_CURRENT)
    bool when_touched = false;  // each page when it is touched (MCL_ONFAULT)
    bool later = false;         // later mappings (MCL_FUTURE)
};
LockAll read_lock_flags(int flags) noexcept;

/// Locks what mlockall(MCL_CURRENT) would, mapping by mapping, except what has no content: memory
/// without access, files whose names begin with `without`, and mappings that can only be read and
/// for whose addresses `is_unwritten` returns true. Returns false, and changes nothing, if that is
/// more than the process may lock or the mappings cannot be read. Allocates nothing.
bool lock_content(bool when_touched, std::string_view without,
                  bool (*is_unwritten)(const void*)) noexcept;

}  // namespace tensorpool::platform
