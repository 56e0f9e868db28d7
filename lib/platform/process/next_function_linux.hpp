#pragma once

namespace tensorpool::platform {

/// Returns the function of this name that the loader finds after the calling library, in its search
/// order; nullptr if there is none.
void* next_function(const char* name) noexcept;

}  // namespace tensorpool::platform
