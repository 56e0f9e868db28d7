#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tensorpool::testing {

/// Returns /proc/self/task/<n>/status of each thread with this name.
inline std::vector<std::string> threads_named(const std::string& name) {
    std::vector<std::string> found;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream file(task.path() / "status");
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        if (text.starts_with("Name:\t" + name + "\n")) found.push_back(text);
    }
    return found;
}

}  // namespace tensorpool::testing
