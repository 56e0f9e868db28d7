#pragma once

/// A compiler barrier, which all subjects use alike.

namespace perf {

/// Hides `value` and the contents of memory from the compiler. It then cannot fold a size, reuse a
/// bucket number from the call before, or drop a block that is not used.
template <class T>
inline void opaque(T& value) noexcept {
    asm volatile("" : "+r"(value) : : "memory");
}

}  // namespace perf
