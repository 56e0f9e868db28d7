#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/stacks/python_frames.hpp"

namespace tensorpool::platform {

/// One call of a program's stack: of native code or of Python.
struct ProgramFrame {
    std::uintptr_t address = 0;         // of native code, as capture_stack stores it
    const void* python_code = nullptr;  // of a Python call; its address is 0
    std::uint32_t line = 0;             // of a Python call; 0: unknown
};

/// What `capture_program_stack` works with: too large for a thread with a small stack.
struct StackBuffers {
    // A call from Python passes through some ten functions of the interpreter and a library.
    static constexpr std::size_t max_native = 96;
    static constexpr std::size_t max_python = 64;

    // The native part of the last stack, innermost first.
    std::size_t native_count = 0;
    std::uintptr_t addresses[max_native];     // as capture_stack stores them
    const std::uintptr_t* slots[max_native];  // where the return addresses should lie
    PythonFrame python[max_python];
};

/// Stores up to `max` calls of the calling thread in `frames`, innermost first, and returns how
/// many were found. If `find_python` has found an interpreter, Python calls stand where the
/// interpreter ran them, and its own functions are left out. Costs, allocations and locks are those
/// of `capture_stack`.
std::size_t capture_program_stack(ProgramFrame* frames, std::size_t max,
                                  StackBuffers& buffers) noexcept;

}  // namespace tensorpool::platform
