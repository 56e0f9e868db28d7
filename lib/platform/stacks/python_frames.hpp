#pragma once

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

/// One call in the calling thread's Python stack.
struct PythonFrame {
    const void* code = nullptr;  // its code object, alive as long as the call
    std::uint32_t line = 0;      // 0: unknown
    // The interpreter's C function began with this call. Older frames belong to an earlier C call.
    bool is_entry = false;
};

/// Looks for a Python interpreter in this process whose frames can be read: CPython 3.11 to 3.13.
/// Returns false if there is none. May call malloc, takes the loader's lock, and clears dlerror.
/// Until it has returned true, the functions below find nothing.
bool find_python() noexcept;

/// Stores up to `max` frames of the calling thread in `frames`, innermost first, and returns how
/// many were found. Reads the interpreter's own structures, so it takes no lock and no reference
/// and calls no Python function. REQUIRES: the caller is not inside a signal handler.
std::size_t capture_python_frames(PythonFrame* frames, std::size_t max) noexcept;

/// Returns a number that stands for the innermost `max` calls in the calling thread's Python stack
/// and the instructions that they have reached; 0 if there are none. REQUIRES: the caller
/// is not inside a signal handler.
std::uint64_t hash_python_stack(std::size_t max) noexcept;

/// Returns whether a code address belongs to the interpreter itself.
bool is_python_interpreter(std::uintptr_t address) noexcept;
/// Returns whether a code address belongs to the C function that runs Python code.
bool runs_python_code(std::uintptr_t address) noexcept;

/// Returns a number that stands for the function of a code object of the present stack. Another
/// function has another number, even if its code object has the same address later.
std::uint64_t identify_python_code(const void* code) noexcept;
/// Writes "python:function@file" for the code object of a frame of the present stack into `text`,
/// which has `room` bytes. Long file names lose their beginning. Returns the length.
std::size_t name_python_code(const void* code, char* text, std::size_t room) noexcept;

}  // namespace tensorpool::platform
