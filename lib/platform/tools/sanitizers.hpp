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

/// AddressSanitizer and MemorySanitizer, which a program may be built with even if this library is
/// not.
namespace tensorpool::platform::sanitizers {

/// Returns which of the two this process contains, or `none`.
MemoryTool present() noexcept;
/// Makes memory accessible, with undefined content.
void open_fresh(const void* address, std::size_t bytes) noexcept;
/// Makes memory inaccessible. For MemorySanitizer, which knows no such state, its content becomes
/// undefined.
void close(const void* address, std::size_t bytes) noexcept;
/// Makes memory accessible that leaves the library.
void open(const void* address, std::size_t bytes) noexcept;
/// Notes that the content of accessible memory is defined.
void define(const void* address, std::size_t bytes) noexcept;
/// Returns whether memory is inaccessible; false where that is unknown.
bool is_closed(const void* address) noexcept;

}  // namespace tensorpool::platform::sanitizers
