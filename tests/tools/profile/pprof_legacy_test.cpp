#include <gtest/gtest.h>

#include <filesystem>

#include "formats/profile/formats.hpp"
#include "support/run_program.hpp"
#include "tools/profile/made_profile.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::profile {
namespace {

TEST(PprofLegacy, HasALineForEachSite) {
    const std::string text = to_pprof_legacy(name_frames(testing::two_sites(), Value::live));
    EXPECT_TRUE(text.starts_with("--- symbol\nbinary=")) << text;
    EXPECT_NE(text.find("0x0000000000002000 load at train.py:12\n"), std::string::npos) << text;
    EXPECT_NE(text.find("--- heap\n"
                        "heap profile:     80:     8000 [   320:    32000] @ heapprofile\n"
                        "    60:     6000 [   240:    24000] @ 0x1000 0x2001 0x3001\n"
                        "    20:     2000 [    80:     8000] @ 0x4000 0x3001\n"),
              std::string::npos)
        << text;
}

TEST(PprofLegacy, IsReadByJeprof) {
    if (!std::filesystem::exists("/usr/bin/jeprof")) {
        GTEST_SKIP() << "install the Debian package libjemalloc-dev";
    }
    HeapProfile profile = testing::two_sites();
    profile.sites[0].peak_bytes = 3 << 20;
    profile.sites[1].peak_bytes = 1 << 20;
    const photos::TemporaryFolder folder;
    const std::string path =
        folder.file("a.heap", to_pprof_legacy(name_frames(profile, Value::peak)));
    const auto result = tensorpool::testing::run_program("/usr/bin/jeprof", {"--text", path});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_NE(result.output.find("Total: 4.0 MB"), std::string::npos) << result.output;
    EXPECT_NE(result.output.find("75.0%      3.0  75.0% step at train.py:20"), std::string::npos)
        << result.output;
}

}  // namespace
}  // namespace tensorpool::command::profile
