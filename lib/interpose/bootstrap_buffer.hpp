#pragma once

#include <cstddef>

/// Memory for requests that the loader makes during the lookup of the next allocator. It is never
/// freed. The process has only one thread that early.
namespace tensorpool::interpose {

/// Returns zeroed memory aligned to 64 bytes; nullptr if the buffer is used up or the alignment is
/// larger.
void* take_from_bootstrap_buffer(std::size_t bytes, std::size_t alignment) noexcept;
bool bootstrap_buffer_is_used() noexcept;
bool is_in_bootstrap_buffer(const void* p) noexcept;
/// Returns the size of a block in the buffer.
std::size_t bytes_in_bootstrap_buffer(const void* p) noexcept;

}  // namespace tensorpool::interpose
