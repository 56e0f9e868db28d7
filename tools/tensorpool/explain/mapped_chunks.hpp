#pragma once

/// @file
/// What anonymous mappings hold that are neither tensorpool's nor stacks nor heaps.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "explain/memory_map.hpp"

namespace tensorpool::command::explain {

/// Reads a word of the process's memory; nothing if it cannot be read.
using ReadWord = std::function<std::optional<std::uint64_t>(std::uint64_t address)>;

/// Returns a function that reads the memory of a process as far as the system allows it.
ReadWord memory_of(std::uint64_t process);

/// Resident bytes of one mapping.
struct MappedChunks {
    std::uint64_t malloc_bytes = 0;  ///< large blocks of the C library's malloc
    std::uint64_t python_bytes = 0;  ///< arenas of Python's small objects
};

/// Returns whether the process runs Python.
bool runs_python(const std::vector<Mapping>& mappings);

/// Finds out what an anonymous mapping holds. A large block of malloc begins with its size, and the
/// system joins adjacent ones. What is left of a mapping of Python, and large enough for an arena,
/// counts as arenas. The resident bytes are divided in proportion.
MappedChunks chunks_in(const Mapping& mapping, bool is_python, const ReadWord& read_word);

}  // namespace tensorpool::command::explain
