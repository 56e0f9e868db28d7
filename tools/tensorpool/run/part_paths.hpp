#pragma once

#include <filesystem>

namespace tensorpool::command::run {

/// The paths of the files that enable the parts. Files may be missing.
struct PartPaths {
    std::filesystem::path interposer;   ///< libtensorpool_interpose.so
    std::filesystem::path torch;        ///< libtensorpool_torch.so
    std::filesystem::path package;      ///< the folder of the Python package
    std::filesystem::path site_folder;  ///< contains our sitecustomize.py
};

/// Finds the files relative to this command: in an installed tree, which may have been moved, or in
/// the build folder that built it.
PartPaths find_part_paths();
/// Returns the paths for a command in `folder`.
PartPaths part_paths_beside(const std::filesystem::path& folder);

}  // namespace tensorpool::command::run
