#pragma once

#include <cstddef>

namespace tensorpool::detail {
inline namespace abi_2 {

/// From now on, an access to memory that pools protect stops the program with a report. Installs
/// handlers for SIGSEGV and SIGBUS (platform/process/fault_handler.hpp).
void stop_at_faults() noexcept;

/// Writes the report of an access to `address` into `text`, of which at most `bytes` bytes
/// including the final null are used. Returns its length; 0 if no pool protects the address. May be
/// called in a signal handler.
std::size_t describe_fault(const void* address, char* text, std::size_t bytes) noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
