#pragma once

/// @file
/// The mappings of a process, as /proc/<pid>/smaps lists them, and what those anonymous ones hold
/// that are neither tensorpool's nor stacks nor heaps.

#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace tensorpool::command::explain {

/// What a mapping holds, as far as its name, its access and its neighbours show.
enum class MappingKind {
    pools,      ///< memory of pools
    page_map,   ///< the words for the pages of pools
    segment,    ///< the statistics of this process
    heap,       ///< of the C library's malloc
    stack,      ///< of a thread
    file,       ///< of a program, a library, another file or the kernel
    shared,     ///< shared with other processes
    device,     ///< of a device's driver
    anonymous,  ///< anything else
    // What anonymous mappings contain (mapped_chunks.hpp); `kind_of` does not return these.
    malloc_chunk,  ///< large blocks of the C library's malloc
    python,        ///< small objects of Python
};

struct Mapping {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string access;  ///< such as "rw-p"
    std::string path;    ///< "" if it has none
    std::uint64_t resident_bytes = 0;

    bool is_accessible() const { return access.starts_with('r'); }
    std::uint64_t bytes() const { return end - begin; }
};

/// A range of addresses that the process published.
struct Range {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;

    bool contains(const Mapping& mapping) const {
        return mapping.begin - begin < bytes;  // also false below `begin`
    }
};

/// Reads mappings until the end of `smaps`, in the order of their addresses.
std::vector<Mapping> read_memory_map(std::istream& smaps);
/// Reads the mappings of a process. Throws CommandError if they cannot be read.
std::vector<Mapping> read_memory_map(std::uint64_t process);

/// Returns what the mapping with this index holds.
MappingKind kind_of(const std::vector<Mapping>& mappings, std::size_t index, Range pools,
                    Range page_map);

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
