// TENSORPOOL_RUN_…: paths from the folder of the program, by parts.cmake.

#include "run/places.hpp"

#include <string>
#include <string_view>
#include <system_error>

namespace tensorpool::command::run {
namespace {

namespace fs = std::filesystem;

/// operator/ leaves an absolute path as it is.
fs::path path_from(const fs::path& folder, const char* path) {
    return (folder / path).lexically_normal();
}

/// Where the program lies in the build folder that made it, that; otherwise "".
fs::path build_folder_of(const fs::path& folder) {
    constexpr std::string_view place = "/" TENSORPOOL_RUN_PLACE_IN_BUILD;
    std::string text = folder;
    if (!text.ends_with(place)) return {};
    text.resize(text.size() - place.size());
    std::error_code ignored;
    return fs::exists(text + "/cmake_install.cmake", ignored) ? fs::path(text) : fs::path();
}

}  // namespace

Places places_beside(const fs::path& folder) {
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

Places find_places() {
    return places_beside(fs::read_symlink("/proc/self/exe").parent_path());
}

}  // namespace tensorpool::command::run
