#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <string>

namespace tensorpool::stashing {

/// Returns the descriptor of the one file that stashes are spilled to; -1 if there is none.
inline int spill_file() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code none;
        const auto target = std::filesystem::read_symlink(entry.path(), none).string();
        if (target.ends_with("(deleted)") && !target.starts_with("/memfd:"))
            return std::stoi(entry.path().filename());
    }
    return -1;
}

/// Returns the disk space of that file in bytes; 0 if there is none.
inline std::size_t disk_space() {
    struct stat found = {};
    if (fstat(spill_file(), &found) != 0) return 0;
    return static_cast<std::size_t>(found.st_blocks) * 512;
}

}  // namespace tensorpool::stashing
