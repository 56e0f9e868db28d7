#pragma once

#include <filesystem>
#include <random>
#include <string>

namespace tensorpool::testing {

/// A path that no other test or process uses. The destructor removes the file or folder at it.
class TemporaryPath {
public:
    explicit TemporaryPath(const std::string& ending = "") {
        std::random_device random;
        path_ = std::filesystem::temp_directory_path() /
                ("tensorpool_test_" + std::to_string(random()) + std::to_string(random()) + ending);
    }
    ~TemporaryPath() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryPath(const TemporaryPath&) = delete;
    TemporaryPath& operator=(const TemporaryPath&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::string text() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

}  // namespace tensorpool::testing
