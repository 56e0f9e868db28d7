#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

namespace tensorpool::testing {

/// A sanitizer's shadow and its own allocator drown what a process takes in memory.
constexpr bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

/// Bytes of this process, from /proc/self/status (proc(5)).
struct MemoryFigures {
    std::size_t address_space = 0;
    /// Without what is resident of files: a program's own code comes in as it is run.
    std::size_t resident = 0;
};

inline MemoryFigures memory_figures() {
    std::ifstream file("/proc/self/status");
    MemoryFigures figures;
    for (std::string name; file >> name;
         file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
        std::size_t kilobytes = 0;
        if (name == "VmSize:" && file >> kilobytes) figures.address_space = kilobytes * 1024;
        if ((name == "RssAnon:" || name == "RssShmem:") && file >> kilobytes)
            figures.resident += kilobytes * 1024;
    }
    return figures;
}

inline std::size_t mapping_count() {
    std::ifstream file("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
}

inline std::size_t entries_of(const char* folder) {
    const std::filesystem::directory_iterator entries(folder);
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}
inline std::size_t thread_count() {
    return entries_of("/proc/self/task");
}
inline std::size_t descriptor_count() {
    return entries_of("/proc/self/fd");
}

}  // namespace tensorpool::testing
