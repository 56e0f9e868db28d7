#include "architecture/layer_check.hpp"

#include <stdexcept>

#include "architecture/planted_project.hpp"

namespace tensorpool::architecture {
namespace {

namespace fs = std::filesystem;

TEST(Layers, ThisProjectHasNoViolations) {
    EXPECT_EQ(lines_of(check_layers(TENSORPOOL_SOURCE_FOLDER)), "");
}

/// A small valid project in a folder of its own, into which tests plant faults.
class PlantedFault : public PlantedProject {
protected:
    PlantedFault() : PlantedProject("layer") {
        write(
            "lib/layers.txt",
            "layer base\nlayer platform base\nlayer pages base platform\n"
            "layer pool base platform pages\nheader pool.hpp pool\nheader detail/bits.hpp base\n");
        write("lib/base/bits.cpp", "#include <bit>\n#include <tensorpool/detail/bits.hpp>\n");
        write("lib/platform/pages_linux.cpp", "#include <sys/mman.h>\n#ifdef __linux__\n#endif\n");
        write("lib/pages/span.hpp", "#pragma once\n");
        write("lib/pages/span.cpp", "#include \"span.hpp\"\n#include <boost/intrusive/list.hpp>\n");
        write("lib/pool/pool.cpp", "#include <tensorpool/pool.hpp>\n#include \"pages/span.hpp\"\n");
        write("include/tensorpool/pool.hpp", "#include <tensorpool/detail/bits.hpp>\n");
        write("include/tensorpool/detail/bits.hpp", "#include <bit>\n#include <stdint.h>\n");
    }
    std::string found() const { return lines_of(check_layers(root_)); }
};

TEST_F(PlantedFault, ValidProjectHasNoViolations) {
    EXPECT_EQ(found(), "");
}

TEST_F(PlantedFault, ReportsIncludeOfHigherLayer) {
    write("lib/base/bits.cpp", "#include <bit>\n\n  #  include \"pages/span.hpp\"  // why\n");
    EXPECT_EQ(found(),
              "lib/base/bits.cpp:3: layer base includes pages/span.hpp of layer pages; "
              "allowed: the standard library only\n");
}

TEST_F(PlantedFault, FolderMayHaveALineOfItsOwn) {
    write("lib/layers.txt",
          "layer base\nlayer platform base\nlayer pages base platform\n"
          "layer pool base platform pages\nlayer pages/bindings base pages pool\n"
          "header pool.hpp pool\nheader detail/bits.hpp base\n");
    write("lib/pages/bindings/deep/span.cpp", "#include <tensorpool/pool.hpp>\n");
    EXPECT_EQ(found(), "");
    write("lib/pages/span.hpp", "#include \"pages/bindings/span.hpp\"\n");
    write("lib/pages/bindings/span.hpp", "");
    EXPECT_EQ(found(),
              "lib/pages/span.hpp:1: layer pages includes pages/bindings/span.hpp of layer "
              "pages/bindings; allowed: base, platform\n");
}

TEST_F(PlantedFault, ReportsIncludeThroughParentFolder) {
    write("lib/pages/span.cpp", "#include \"../pool/pool.hpp\"\n");
    write("lib/pool/pool.hpp", "#pragma once\n");
    EXPECT_EQ(found(),
              "lib/pages/span.cpp:1: layer pages includes ../pool/pool.hpp of layer pool; "
              "allowed: base, platform\n");
}

TEST_F(PlantedFault, ReportsIncludeOfHigherLayersPublicHeader) {
    write("lib/pages/span.cpp", "#include <tensorpool/pool.hpp>\n");
    EXPECT_EQ(found(),
              "lib/pages/span.cpp:1: layer pages includes tensorpool/pool.hpp of layer pool; "
              "allowed: base, platform\n");
    write("lib/pages/span.cpp", "");
    write("include/tensorpool/detail/bits.hpp", "#include <tensorpool/pool.hpp>\n");
    EXPECT_EQ(found(),
              "include/tensorpool/detail/bits.hpp:1: layer base includes tensorpool/pool.hpp of "
              "layer pool; allowed: the standard library only\n");
}

TEST_F(PlantedFault, ReportsBoostInPublicHeader) {
    write("include/tensorpool/pool.hpp", "#include <boost/lockfree/stack.hpp>\n");
    EXPECT_EQ(found(),
              "include/tensorpool/pool.hpp:1: layer pool includes boost/lockfree/stack.hpp; no "
              "public header may include Boost\n");
}

TEST_F(PlantedFault, ReportsUnlistedForeignLibraryInPublicHeader) {
    const std::string table =
        "layer base\nlayer platform base\nlayer pages base platform\n"
        "layer pool base platform pages\nheader detail/bits.hpp base\n";
    write("include/tensorpool/pool.hpp", "#include <opencv2/core.hpp>\n#include <Eigen/Core>\n");
    write("lib/layers.txt", table + "header pool.hpp pool opencv2/\n");
    EXPECT_EQ(found(),
              "include/tensorpool/pool.hpp:2: layer pool includes Eigen/Core; a public header may "
              "include only standard headers and ours, and of other libraries what its line in "
              "lib/layers.txt names\n");
    write("lib/layers.txt", table + "header pool.hpp pool opencv2/ Eigen/Core\n");
    EXPECT_EQ(found(), "");
}

TEST_F(PlantedFault, ReportsUnlistedForeignLibraryInFolder) {
    write("lib/pool/guest/guest.cpp", "#include <Python.h>\n#include <tensorpool/pool.hpp>\n");
    EXPECT_EQ(found(),
              "lib/pool/guest/guest.cpp:1: layer pool includes Python.h; only platform may include "
              "what is not standard C++ or Boost\n");
    write("lib/layers.txt",
          "layer base\nlayer platform base\nlayer pages base platform\n"
          "layer pool base platform pages\nheader pool.hpp pool\nheader detail/bits.hpp base\n"
          "folder pool/guest Python.h\n");
    EXPECT_EQ(found(), "");
}

TEST_F(PlantedFault, ReportsInternalHeaderInPublicHeader) {
    write("include/tensorpool/detail/bits.hpp", "#include \"pages/span.hpp\"\n");
    EXPECT_NE(found(), "");
}

TEST_F(PlantedFault, ReportsSystemHeaderAbovePlatform) {
    write("lib/pages/span.cpp", "#include <sys/mman.h>\n");
    EXPECT_EQ(found(),
              "lib/pages/span.cpp:1: layer pages includes sys/mman.h; only platform may include "
              "what is not standard C++ or Boost\n");
}

TEST_F(PlantedFault, ReportsSystemMacroAbovePlatform) {
    write("lib/pages/span.cpp",
          "// __linux__ in a comment is none\n#if defined(X) && \\\n"
          "    defined(__APPLE__)\n#elif defined(_WIN32)\n#endif\n");
    EXPECT_EQ(found(),
              "lib/pages/span.cpp:3: layer pages names a system: __APPLE__; only platform may\n"
              "lib/pages/span.cpp:4: layer pages names a system: _WIN32; only platform may\n");
}

TEST_F(PlantedFault, ReportsFileWithoutLayer) {
    write("lib/odds/ends.cpp", "");
    write("include/tensorpool/new.hpp", "");
    EXPECT_EQ(
        found(),
        "include/tensorpool/new.hpp:0: belongs to no layer: lib/layers.txt has no line for it\n"
        "lib/odds/ends.cpp:0: belongs to no layer: lib/layers.txt has no line for it\n");
}

TEST_F(PlantedFault, ReportsMissingIncludesAndHeaders) {
    write("lib/pages/span.cpp", "#include \"pages/gone.hpp\"\n#include <tensorpool/gone.hpp>\n");
    fs::remove(root_ / "include/tensorpool/pool.hpp");
    EXPECT_EQ(
        found(),
        "lib/layers.txt:0: header 'pool.hpp' does not exist\n"
        "lib/pages/span.cpp:1: layer pages includes pages/gone.hpp, which does not exist\n"
        "lib/pages/span.cpp:2: layer pages includes tensorpool/gone.hpp, which does not exist\n"
        "lib/pool/pool.cpp:1: layer pool includes tensorpool/pool.hpp, which does not exist\n");
}

TEST_F(PlantedFault, MissingTableThrows) {
    fs::remove(root_ / "lib/layers.txt");
    EXPECT_THROW(check_layers(root_), std::runtime_error);
}

TEST_F(PlantedFault, ReportsSubcommandThatIncludesAnother) {
    write("tools/tensorpool/layers.txt",
          "layer common\nlayer formats common\nlayer subcommand common formats\n");
    write("tools/tensorpool/main.cpp", "#include \"plan/plan.hpp\"\n");
    write("tools/tensorpool/common/table.hpp", "#include <string>\n");
    write("tools/tensorpool/formats/trace/trace.hpp", "#include \"common/table.hpp\"\n");
    write("tools/tensorpool/plan/plan.hpp", "#include \"formats/trace/trace.hpp\"\n");
    write("tools/tensorpool/plan/plan.cpp", "#include \"plan/plan.hpp\"\n#include \"plan.hpp\"\n");
    EXPECT_EQ(found(), "");
    write("tools/tensorpool/top/top.cpp",
          "#include \"common/table.hpp\"\n#include \"plan/plan.hpp\"\n");
    write("tools/tensorpool/common/table.hpp", "#include \"../formats/trace/trace.hpp\"\n");
    EXPECT_EQ(found(),
              "tools/tensorpool/common/table.hpp:1: layer common includes "
              "../formats/trace/trace.hpp of formats; allowed: the standard library only\n"
              "tools/tensorpool/top/top.cpp:2: subcommand top includes plan/plan.hpp of plan; "
              "allowed: common, formats\n");
}

}  // namespace
}  // namespace tensorpool::architecture
