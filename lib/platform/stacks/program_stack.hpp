#pragma once

#include "platform/stacks/python_frames.hpp"

namespace tensorpool::platform {

/// Stores up to `max` return addresses of the calling thread in `frames`, innermost first and each
/// less 1, and returns how many were found. Where `slots` is given, stores there where on the stack
/// each of them should lie, or nullptr, as for a function that a signal interrupted. Neither
/// allocates nor takes a lock of this library.
///
/// On Linux with glibc 2.35 or later and x86-64, it takes no lock at all and survives every stack:
/// it ends at an address that is not code of a loaded file, and at a page that cannot be read.
/// Elsewhere, return addresses are trusted, and the first call may take a lock of the loader.
std::size_t capture_stack(std::uintptr_t* frames, std::size_t max,
                          const std::uintptr_t** slots = nullptr) noexcept;

/// The file that a code address belongs to.
struct CodeOrigin {
    const char* path = nullptr;  // of the file that was loaded; nullptr if the code is in no file
    std::uint64_t offset = 0;    // offset in the file, as its symbols count
};
/// Finds the file of a code address. The path is valid while the code stays loaded. Takes the
/// loader's lock only if the C library requires it (glibc before 2.35).
CodeOrigin find_code(std::uintptr_t address) noexcept;

/// One call of a program's stack: of native code or of Python.
struct ProgramFrame {
    std::uintptr_t address = 0;         // of native code, as capture_stack stores it
    const void* python_code = nullptr;  // of a Python call; its address is 0
    std::uint32_t line = 0;             // of a Python call; 0: unknown
};

/// Returns a word that keeps its meaning after the process has ended: the number of the file or the
/// Python function, which `number_of` returns for its name, above `offset_bits` bits with the
/// offset or the line. Code in no file, and code whose name has no number, keeps its bare address.
template <unsigned offset_bits, std::size_t name_bytes, class NumberOf>
std::uint64_t word_of(const ProgramFrame& frame, NumberOf number_of) noexcept {
    constexpr std::uint64_t mask = (std::uint64_t{1} << offset_bits) - 1;
    if (frame.python_code != nullptr) {
        char name[name_bytes];
        const std::size_t length = name_python_code(frame.python_code, name, sizeof name);
        const std::uint64_t number = number_of({name, length});
        return number == 0 ? 0 : number << offset_bits | frame.line;
    }
    const CodeOrigin code = find_code(frame.address);
    if (code.path == nullptr) return frame.address & mask;
    const std::uint64_t number = number_of(code.path);
    return number << offset_bits | ((number == 0 ? frame.address : code.offset) & mask);
}

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
