#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace tensorpool::testing {

/// A temporary directory with files made by a test. The destructor removes it.
class FileTree {
public:
    FileTree() {
        std::string name = (std::filesystem::temp_directory_path() / "tensorpool.XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
        root_ = name;
    }
    ~FileTree() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }
    FileTree(const FileTree&) = delete;
    FileTree& operator=(const FileTree&) = delete;

    const std::string& root() const { return root_; }
    /// Returns the real path of a path in the tree, such as "/proc/meminfo".
    std::string path(const std::string& path) const { return root_ + path; }

    void write(const std::string& path, const std::string& text) const {
        const std::filesystem::path file = root_ + path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary) << text;
    }

    std::string read(const std::string& path) const {
        std::ostringstream text;
        text << std::ifstream(root_ + path, std::ios::binary).rdbuf();
        return text.str();
    }

private:
    std::string root_;
};

}  // namespace tensorpool::testing
