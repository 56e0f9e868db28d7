#include "formats/launch/launch.hpp"

#include <gtest/gtest.h>

#include "tools/temporary_folder.hpp"

namespace tensorpool::command::launch {
namespace {

namespace fs = std::filesystem;

TEST(PartPaths, LieInTheBuildFolder) {
    const PartPaths paths = part_paths_beside(fs::path(TENSORPOOL_PROGRAM).parent_path());
#ifdef TENSORPOOL_HAS_INTERPOSER
    EXPECT_TRUE(fs::exists(paths.interposer)) << paths.interposer;
#endif
#ifdef TENSORPOOL_PYTHON
    EXPECT_TRUE(fs::exists(paths.package / "__init__.py")) << paths.package;
    EXPECT_TRUE(fs::exists(paths.site_folder / "sitecustomize.py")) << paths.site_folder;
#endif
    EXPECT_EQ(paths.torch.filename(), "libtensorpool_torch.so");
}

// Also below the build folder, where the tests install packages.
TEST(PartPaths, FollowAnInstalledTree) {
    const photos::TemporaryFolder folder;
    folder.file("cmake_install.cmake", "");
    const PartPaths paths = part_paths_beside(folder.path() / "usr" / "bin");
    const std::string prefix = folder.path() / "usr";
    for (const fs::path& one : {paths.interposer, paths.torch, paths.package, paths.site_folder}) {
        EXPECT_TRUE(one.string().starts_with(prefix + '/')) << one;
    }
    EXPECT_EQ(paths.package.filename(), "tensorpool");
    EXPECT_EQ(paths.site_folder, prefix + "/share/tensorpool/python_site");
}

}  // namespace
}  // namespace tensorpool::command::launch
