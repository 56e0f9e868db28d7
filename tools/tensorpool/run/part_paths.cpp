// parts.cmake defines TENSORPOOL_RUN_…: paths relative to the folder of the command.

#include "run/part_paths.hpp"

#include <string>
#include <string_view>
#include <system_error>

namespace tensorpool::command::run {
namespace {

namespace fs = std::filesystem;

/// Joins paths; operator/ leaves an absolute path unchanged.
fs::path path_from(const fs::path& folder, const char* path) {
    return (folder / path).lexically_normal();
}

/// Returns the build folder if the command lies in the one that built it; otherwise "".
fs::path build_folder_of(const fs::path& folder) {
    constexpr std::string_view position = "/" TENSORPOOL_RUN_FOLDER_IN_BUILD;
    std::string text = folder;
    if (!text.ends_with(position)) return {};
    text.resize(text.size() - position.size());
    std::error_code ignored;
    return fs::exists(text + "/cmake_install.cmake", ignored) ? fs::path(text) : fs::path();
}

}  // namespace

PartPaths part_paths_beside(const fs::path& folder) {
    if (const fs::path build = build_folder_of(folder); !build.empty()) {
        return {build / "lib/interpose/libtensorpool_interpose.so",
                build / "lib/libtensorpool_torch.so", build / "python/tensorpool",
                build / "python_site"};
    }
    const fs::path libraries = path_from(folder, TENSORPOOL_RUN_LIBRARIES);
    return {libraries / "libtensorpool_interpose.so", libraries / "libtensorpool_torch.so",
            path_from(folder, TENSORPOOL_RUN_PYTHON) / "tensorpool",
            path_from(folder, TENSORPOOL_RUN_DATA) / "python_site"};
}

PartPaths find_part_paths() {
    return part_paths_beside(fs::read_symlink("/proc/self/exe").parent_path());
}

}  // namespace tensorpool::command::run
