#include "run/places.hpp"

#include <gtest/gtest.h>

#include "tools/temporary_folder.hpp"

namespace tensorpool::command::run {
namespace {

namespace fs = std::filesystem;

TEST(Places, OfTheBuildFolderAreThoseThatItMade) {
    const Places places = places_beside(fs::path(TENSORPOOL_PROGRAM).parent_path());
#ifdef TENSORPOOL_HAS_INTERPOSER
    EXPECT_TRUE(fs::exists(places.interposer)) << places.interposer;
#endif
#ifdef TENSORPOOL_PYTHON
    EXPECT_TRUE(fs::exists(places.package / "__init__.py")) << places.package;
    EXPECT_TRUE(fs::exists(places.site_folder / "sitecustomize.py")) << places.site_folder;
#endif
    EXPECT_EQ(places.torch.filename(), "libtensorpool_torch.so");
}

// Below the build folder too, where packages are tried out.
TEST(Places, OfAnInstalledTreeGoWithIt) {
    const photos::TemporaryFolder folder;
    folder.file("cmake_install.cmake", "");
    const Places places = places_beside(folder.path() / "usr" / "bin");
    const std::string prefix = folder.path() / "usr";
    for (const fs::path& one :
         {places.interposer, places.torch, places.package, places.site_folder}) {
        EXPECT_TRUE(one.string().starts_with(prefix + '/')) << one;
    }
    EXPECT_EQ(places.package.filename(), "tensorpool");
    EXPECT_EQ(places.site_folder, prefix + "/share/tensorpool/python_site");
}

}  // namespace
}  // namespace tensorpool::command::run
