#pragma once

#include <filesystem>

namespace tensorpool::command::run {

/// Where the parts lie that are put under a program. Each may not be there.
struct Places {
    std::filesystem::path interposer;   ///< libtensorpool_interpose.so
    std::filesystem::path torch;        ///< libtensorpool_torch.so
    std::filesystem::path package;      ///< the folder of the Python package
    std::filesystem::path site_folder;  ///< of our sitecustomize.py
};

/// By the place of this program: in an installed tree, which may have been moved, or in the build
/// folder that made it.
Places find_places();
/// The same for a program in `folder`.
Places places_beside(const std::filesystem::path& folder);

}  // namespace tensorpool::command::run
