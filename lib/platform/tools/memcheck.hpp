#pragma once

#include "platform/tools/memory_tools.hpp"

/// The requests to Valgrind's memcheck, which are sequences of instructions without effect outside
/// of Valgrind.
namespace tensorpool::platform::memcheck {

/// Returns whether memcheck runs this process. Other tools of Valgrind do not count.
bool is_present() noexcept;
void allocate(const MarkedBlock& block) noexcept;
void resize(const MarkedBlock& block, std::size_t kept) noexcept;
void free(const MarkedBlock& block) noexcept;
void free_within(const void* address, std::size_t bytes) noexcept;
void define(const void* address, std::size_t bytes) noexcept;
void close(const void* address, std::size_t bytes) noexcept;
void open(const void* address, std::size_t bytes) noexcept;
bool is_closed(const void* address) noexcept;

}  // namespace tensorpool::platform::memcheck
