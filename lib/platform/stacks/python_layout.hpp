#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

/// Where CPython keeps what a stack consists of. The offsets are those of the headers
/// `internal/pycore_frame.h`, `cpython/code.h` and `cpython/unicodeobject.h` of each version, on
/// 64-bit machines.
namespace tensorpool::platform::python {

struct Layout {
    unsigned minor = 0;                 // of version 3
    std::size_t current_in_thread = 0;  // PyThreadState: the frame, or a structure that has it
    std::size_t current_in_cframe = 0;  // in that structure; `direct`: there is none
    std::size_t code = 0;               // the rest until `owner`: _PyInterpreterFrame
    std::size_t previous = 0;
    std::size_t instruction = 0;
    std::size_t owner = 0;
    std::size_t is_entry = 0;    // 0: frames owned by the C stack lie between entries
    std::size_t first_line = 0;  // the rest until `instructions`: PyCodeObject
    std::size_t file = 0;
    std::size_t qualified_name = 0;
    std::size_t line_table = 0;
    std::size_t instructions = 0;
    std::size_t ascii_text = 0;  // PyASCIIObject
    std::size_t wide_text = 0;   // PyCompactUnicodeObject

    static constexpr std::size_t direct = SIZE_MAX;
};

inline constexpr Layout layouts[] = {
    {.minor = 11,
     .current_in_thread = 56,
     .current_in_cframe = 8,
     .code = 32,
     .previous = 48,
     .instruction = 56,
     .owner = 69,
     .is_entry = 68,
     .first_line = 72,
     .file = 112,
     .qualified_name = 128,
     .line_table = 136,
     .instructions = 184,
     .ascii_text = 48,
     .wide_text = 72},
    {.minor = 12,
     .current_in_thread = 56,
     .current_in_cframe = 0,
     .code = 0,
     .previous = 8,
     .instruction = 56,
     .owner = 70,
     .first_line = 68,
     .file = 112,
     .qualified_name = 128,
     .line_table = 136,
     .instructions = 192,
     .ascii_text = 40,
     .wide_text = 56},
    {.minor = 13,
     .current_in_thread = 72,
     .current_in_cframe = Layout::direct,
     .code = 0,
     .previous = 8,
     .instruction = 56,
     .owner = 70,
     .first_line = 68,
     .file = 112,
     .qualified_name = 128,
     .line_table = 136,
     .instructions = 200,
     .ascii_text = 40,
     .wide_text = 56},
};
inline constexpr std::uint8_t owned_by_c_stack = 3;

// Of every object, in all these versions.
inline constexpr std::size_t type_of_object = 8;
inline constexpr std::size_t length_of_bytes = 16;
inline constexpr std::size_t text_of_bytes = 32;
inline constexpr std::size_t length_of_text = 16;
inline constexpr std::size_t state_of_text = 32;

template <class T>
T read(const void* object, std::size_t offset) noexcept {
    T value{};
    std::memcpy(&value, static_cast<const char*>(object) + offset, sizeof value);
    return value;
}

/// Returns the line of an instruction, by its number, in a table of locations (CPython,
/// Objects/locations.md). Returns 0 if the instruction has none.
std::uint32_t line_in_table(const unsigned char* table, std::size_t bytes, std::uint32_t first_line,
                            std::ptrdiff_t instruction) noexcept;

}  // namespace tensorpool::platform::python
