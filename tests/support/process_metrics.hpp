#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

namespace tensorpool::testing {

/// Whether a sanitizer is active, whose memory would hide the program's own use.
constexpr bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

/// Memory use of this process in bytes, from /proc/self/status (proc(5)).
struct MemoryMetrics {
    std::size_t address_space = 0;
    /// Without resident pages of files, since a program's code becomes resident as it runs.
    std::size_t resident = 0;
};

inline MemoryMetrics memory_metrics() {
    std::ifstream file("/proc/self/status");
    MemoryMetrics memory;
    for (std::string name; file >> name;
         file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
        std::size_t kilobytes = 0;
        if (name == "VmSize:" && file >> kilobytes) memory.address_space = kilobytes * 1024;
        if ((name == "RssAnon:" || name == "RssShmem:") && file >> kilobytes)
            memory.resident += kilobytes * 1024;
    }
    return memory;
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
