#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorpool::faults {

/// The system calls of the library, redirected to these functions by the linker (--wrap). Calls
/// that can fail are counted, and refused at a test's request. Thread-safe.

enum class Refuse {
    once,          // the n-th call
    from_then_on,  // that call and all later ones
};

/// Starts counting, and refuses the n-th call from now on, beginning with 1.
void refuse(std::uint64_t n, Refuse how) noexcept;
/// Ends all refusals.
void refuse_nothing() noexcept;
/// Returns the name of the call that was refused first; nullptr if there is none.
const char* refused_call() noexcept;

/// Makes the next unmap after a refusal do nothing: a fault that must be found.
void plant_a_leak() noexcept;

/// Returns the bytes that were mapped and not unmapped.
std::size_t mapped_bytes() noexcept;
/// Returns the bytes in [begin, begin + bytes) that were made writable and not dropped since.
std::size_t kept_bytes(const void* begin, std::size_t bytes);

}  // namespace tensorpool::faults
