#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

/// One call of a program's stack: of native code or of Python.
struct ProgramFrame {
    std::uintptr_t address = 0;         // of native code, as capture_stack stores it
    const void* python_code = nullptr;  // of a Python call; its address is 0
    std::uint32_t line = 0;             // of a Python call; 0: unknown
};

/// The native part of a stack, innermost first.
struct NativeStack {
    // A call from Python passes through some ten functions of the interpreter and a library.
    static constexpr std::size_t max = 96;

    std::size_t count = 0;
    std::uintptr_t addresses[max];     // as capture_stack stores them
    const std::uintptr_t* slots[max];  // where the return addresses should lie
};

/// The Python calls that `capture_program_stack` looks at.
inline constexpr std::size_t max_python_calls = 64;

/// Stores up to `max` calls of the calling thread in `frames`, innermost first, and returns how
/// many were found. If `find_python` has found an interpreter, Python calls stand where the
/// interpreter ran them, and its own functions are left out. Costs, allocations and locks are those
/// of `capture_stack`. Where `native` is given, it receives the native part.
std::size_t capture_program_stack(ProgramFrame* frames, std::size_t max,
                                  NativeStack* native = nullptr) noexcept;

}  // namespace tensorpool::platform
