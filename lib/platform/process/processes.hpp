#pragma once

/// Other processes, as far as a reader of their figures looks at them. Unlike what platform.hpp
/// holds these functions allocate, and may throw std::bad_alloc. Where the system tells nothing of
/// processes, there are none.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/files/observed_file.hpp"

namespace tensorpool::platform {

/// What the system tells everybody.
struct ProcessFacts {
    std::string name;
    std::uint64_t start_ticks = 0;  // tells it from a later process of the same number
    std::uint64_t minor_faults = 0;
    std::uint64_t resident_bytes = 0;
    bool has_memory = false;  // none: it is on its way out
};

/// Nothing when no process of this number runs.
std::optional<ProcessFacts> facts_of(std::uint64_t process);
/// All that can be seen, in the order of their numbers.
std::vector<std::uint64_t> process_numbers();
/// "" where there is no telling.
std::string thread_name(std::uint64_t process, std::uint64_t thread);

/// How a process names itself: in a container it has another number than outside. 0: not known.
struct OwnName {
    std::uint64_t number = 0;
    std::uint64_t name_space = 0;
};
OwnName own_name_of(std::uint64_t process);

/// Whether one may look into a process, and why not.
enum class Look : std::uint8_t {
    allowed,
    no_process,
    other_user,
    other_group,
    more_capabilities,
    other_name_space,
    not_dumpable,
    refused,  // for a reason of the system's own
};

/// The files without a path that a process holds open under a name, as share_memory makes them.
struct MemoryFiles {
    Look look = Look::no_process;
    struct One {
        std::uint64_t descriptor;  // its number in that process
        ObservedFile file;
    };
    std::vector<One> files;
};
MemoryFiles memory_files_of(std::uint64_t process, std::string_view name);
/// Whether that process still has this very file under that number.
bool holds_file(std::uint64_t process, std::uint64_t descriptor, const ObservedFile& file);
/// Whether such a file, that of this inode or with 0 any, is mapped into the process to be written,
/// as its own is and those that it reads are not; open or not. False where nothing can be seen.
bool maps_memory_file(std::uint64_t process, std::string_view name, std::uint64_t inode);

}  // namespace tensorpool::platform
