#pragma once

#include <atomic>
#include <cstdint>

namespace tensorpool::platform {

/// Returns a word of 1 that is 0 in every child of this process that has its own memory, whether or
/// not the handlers of a fork were called: clone(2) and _Fork call none. The word is never freed.
/// Returns nullptr if the system has no such memory.
std::atomic<std::uint32_t>* make_process_mark() noexcept;

}  // namespace tensorpool::platform
