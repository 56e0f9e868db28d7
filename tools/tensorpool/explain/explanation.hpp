#pragma once

/// @file
/// The mappings of a process, as /proc/<pid>/smaps lists them, and an explanation of its resident
/// memory.

#include <functional>
#include <istream>

#include <tensorpool/process_snapshot.hpp>

#include "formats/profile/named_profile.hpp"

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
    // What anonymous mappings contain; `kind_of` does not return these.
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

/// A part of a process's resident memory.
struct Row {
    std::string what;
    std::uint64_t bytes = 0;
    std::uint64_t back_bytes = 0;  ///< what can be given back to the system
    std::string why;               ///< what keeps memory that is not in use; "" if that is not ours
    std::string how;               ///< what gives it back; "" if nothing is known to
};

/// What allocated a part of the blocks in use: a call site or a scope.
struct Allocator {
    std::string name;
    std::uint64_t bytes = 0;
};

/// The resident part of the blocks in use of all pools, without rounding.
struct InUse {
    std::uint64_t bytes = 0;
    /// What callers requested for these blocks; more than `bytes` if they were not touched whole.
    std::uint64_t requested_bytes = 0;
    std::uint64_t interval = 0;     ///< the mean distance between samples
    std::vector<Allocator> sites;   ///< estimated; they add up to `bytes` unless there are none
    std::vector<Allocator> scopes;  ///< what ended scopes allocated and did not free
    std::string note;               ///< why there are no sites
};

/// Why the resident memory of a process is what it is. The rows add up to it.
struct Explanation {
    std::uint64_t process = 0;
    std::string name;
    std::uint64_t resident_bytes = 0;
    std::vector<Row> rows;  ///< the largest first; none is empty
    InUse in_use;           ///< divides the rows of blocks in use once more
};

/// Divides the resident memory. `mappings` and `snapshot` were read at about the same time. Memory
/// of pools that is not known to be free counts as blocks in use. `read_word` reads the process.
Explanation explain(const ProcessSnapshot& snapshot, const std::vector<Mapping>& mappings,
                    const ReadWord& read_word = {});

/// Divides the blocks in use by call site. At most ten sites are named, each with at least 1 % of
/// the resident memory.
void add_sites(Explanation& to, const profile::NamedProfile& named);
/// Sets what scopes hold, with the same limits.
void add_scopes(Explanation& to, const ProcessSnapshot& snapshot);

std::string to_text(const Explanation& explanation, Sizes sizes);
std::string to_json(const Explanation& explanation);

}  // namespace tensorpool::command::explain
