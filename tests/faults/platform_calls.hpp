#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorpool::faults {

/// The calls of the library to the system, which the linker leads past here (--wrap): counted, and
/// refused when a test says so. Only calls that can fail are counted. Thread-safe.

enum class Refuse {
    once,        // the n-th call
    ever_after,  // and all that come after it
};

/// Counts from now on and refuses the n-th call, 1 being the next.
void refuse(std::uint64_t n, Refuse how) noexcept;
void refuse_nothing() noexcept;
/// The call that was refused first, by name; nullptr when none was.
const char* refused_call() noexcept;

/// From now on the unmap that follows a refusal is not made: a fault that must be found.
void plant_a_leak() noexcept;

/// Bytes that were mapped and not unmapped.
std::size_t mapped_bytes() noexcept;
/// Bytes in [begin, begin + bytes) that were made writable, and that nobody has tried to drop
/// since.
std::size_t kept_bytes(const void* begin, std::size_t bytes);

}  // namespace tensorpool::faults
