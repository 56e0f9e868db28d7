#pragma once

/// Other processes, as far as a reader of their statistics needs them. Unlike those of
/// platform.hpp, these functions allocate and may throw std::bad_alloc. On systems without this
/// information they report no processes.

#include <optional>
#include <string_view>

#include "platform/files/observed_file.hpp"

namespace tensorpool::platform {

/// What the system shows to all users about a process.
struct ProcessFacts {
    std::string name;
    std::uint64_t start_ticks = 0;  // start time; distinguishes the process from a later one with
                                    // the same number
    std::uint64_t minor_faults = 0;
    std::uint64_t resident_bytes = 0;
    bool has_memory = false;  // false if the process is exiting
};

/// Returns the facts of the process with this number; nullopt if no such process runs.
std::optional<ProcessFacts> facts_of(std::uint64_t process);
/// Returns the numbers of all visible processes in ascending order.
std::vector<std::uint64_t> process_numbers();
/// Returns the name of a thread; "" if it is unknown.
std::string thread_name(std::uint64_t process, std::uint64_t thread);

/// How a process identifies itself: in a container it has a different number than outside. A number
/// of 0 means unknown.
struct OwnName {
    std::uint64_t number = 0;
    std::uint64_t name_space = 0;
};
OwnName own_name_of(std::uint64_t process);

/// Whether this process may look into another one, and if not, why.
enum class Look : std::uint8_t {
    allowed,
    no_process,
    other_user,
    other_group,
    more_capabilities,
    other_name_space,
    not_dumpable,
    refused,  // for another reason of the system
};

/// The files without a path that a process holds open under a name, as created by `share_memory`.
struct MemoryFiles {
    Look look = Look::no_process;
    struct One {
        std::uint64_t descriptor;  // the descriptor number in that process
        ObservedFile file;
    };
    std::vector<One> files;
};
MemoryFiles memory_files_of(std::uint64_t process, std::string_view name);
/// Returns whether that process still has this file open under that descriptor number.
bool holds_file(std::uint64_t process, std::uint64_t descriptor, const ObservedFile& file);
/// Returns whether the process has a writable mapping of such a file with this inode, or of any
/// such file if `inode` is 0. The file need not be open. The process's own segment is mapped
/// writable; segments that it reads are not. Returns false if the mappings cannot be read.
bool maps_memory_file(std::uint64_t process, std::string_view name, std::uint64_t inode);

}  // namespace tensorpool::platform
