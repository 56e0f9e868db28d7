#pragma once

namespace tensorpool::platform {

/// The function of this name that the loader finds behind the library that asks, in the order in
/// which it looks; nullptr where there is none.
void* next_function(const char* name) noexcept;

}  // namespace tensorpool::platform
