#pragma once

/// What keeps the compiler from knowing too much. The same for every subject.

namespace perf {

/// After this the compiler knows neither `value` nor what lies in memory: it can neither fold a
/// size, nor carry a bucket's number over from the call before, nor drop a block nobody uses.
template <class T>
inline void opaque(T& value) noexcept {
    asm volatile("" : "+r"(value) : : "memory");
}

}  // namespace perf
