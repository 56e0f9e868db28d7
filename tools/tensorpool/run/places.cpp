// TENSORPOOL_RUN_…: paths from the folder of the program, by parts.cmake.

#include "run/places.hpp"

#include <system_error>

namespace tensorpool::command::run {
namespace {

namespace fs = std::filesystem;

/// operator/ leaves an absolute path as it is.
fs::path path_from(const fs::path& folder, const char* path) {
    return (folder / path).lexically_normal();
}

}  // namespace

Places places_beside(const fs::path& folder) {
    std::error_code ignored;
    const fs::path build = (folder.string() + TENSORPOOL_RUN_BUILD_FOLDER);
    // Nothing that is installed has this file above it.
    if (fs::exists(build / "cmake_install.cmake", ignored)) {
        return {path_from(build, "lib/interpose/libtensorpool_interpose.so"),
                path_from(build, "lib/libtensorpool_torch.so"),
                path_from(build, "python/tensorpool"), path_from(build, "python_site")};
    }
    const fs::path libraries = path_from(folder, TENSORPOOL_RUN_LIBRARIES);
    return {libraries / "libtensorpool_interpose.so", libraries / "libtensorpool_torch.so",
            path_from(folder, TENSORPOOL_RUN_PYTHON) / "tensorpool",
            path_from(folder, TENSORPOOL_RUN_DATA) / "python_site"};
}

Places find_places() {
    return places_beside(fs::read_symlink("/proc/self/exe").parent_path());
}

}  // namespace tensorpool::command::run
