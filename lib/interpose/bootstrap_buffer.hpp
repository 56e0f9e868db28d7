#pragma once

#include <cstddef>

/// Memory for what the loader asks of us while we ask it for the next allocator. Never freed. Only
/// one thread is there that early.
namespace tensorpool::interpose {

/// Zeros, aligned to 64; nullptr when it is used up, or for a larger alignment.
void* take_from_bootstrap_buffer(std::size_t bytes, std::size_t alignment) noexcept;
bool bootstrap_buffer_is_used() noexcept;
bool is_in_bootstrap_buffer(const void* p) noexcept;
/// Of a block in it.
std::size_t bytes_in_bootstrap_buffer(const void* p) noexcept;

}  // namespace tensorpool::interpose
