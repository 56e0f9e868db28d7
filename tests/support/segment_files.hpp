#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tensorpool::testing {

/// A descriptor of this process and the file behind it.
struct OpenFile {
    int number = -1;
    std::uint64_t inode = 0;
};

inline std::uint64_t inode_of(int file) {
    struct stat status {};
    return fstat(file, &status) == 0 ? status.st_ino : 0;
}

/// Returns the files by which readers would find this process.
inline std::vector<OpenFile> segment_files() {
    std::vector<OpenFile> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        const auto target = std::filesystem::read_symlink(entry.path(), error);
        if (error || target != "/memfd:tensorpool (deleted)") continue;
        const int number = std::stoi(entry.path().filename().string());
        files.push_back({number, inode_of(number)});
    }
    return files;
}

}  // namespace tensorpool::testing
