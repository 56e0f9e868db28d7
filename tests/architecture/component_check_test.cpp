#include "architecture/component_check.hpp"

#include "architecture/planted_project.hpp"

namespace tensorpool::architecture {
namespace {

namespace fs = std::filesystem;

TEST(Components, ThisProjectHasNoViolations) {
    EXPECT_EQ(lines_of(check_components(TENSORPOOL_SOURCE_FOLDER)), "");
}

/// A small project with complete lists in a folder of its own, into which tests plant faults.
class PlantedComponentFault : public PlantedProject {
protected:
    PlantedComponentFault() : PlantedProject("component") {
        write("lib/CMakeLists.txt",
              "tensorpool_add_component(core)\ntensorpool_add_component(device core)\n"
              "if(A)\n  tensorpool_add_component(simulation device)\nendif()\n"
              "tensorpool_add_component(planning core)\n");
        write("lib/pool/CMakeLists.txt",
              "# Not gone.cpp.\ntensorpool_sources(core\n  pool.cpp)\n"
              "if(WIN32)\n  tensorpool_sources(core\n    system/pages_windows.cpp)\nendif()\n"
              "tensorpool_headers(core\n  pool.hpp all.hpp)\n");
        write("lib/pool/pool.cpp", "#include <tensorpool/pool.hpp>\n#include \"pool/pool.hpp\"\n");
        write("lib/pool/pool.hpp", "#pragma once\n");
        write("lib/pool/system/pages_windows.cpp", "");
        write("lib/device/CMakeLists.txt",
              "tensorpool_sources(device device.cpp)\ntensorpool_headers(device device.hpp)\n");
        write("lib/device/device.cpp", "#include \"pool/pool.hpp\"\n#include <vector>\n");
        write("lib/device/streams.hpp", "#pragma once\n");
        write("lib/simulation/CMakeLists.txt", "tensorpool_sources(simulation simulation.cpp)\n");
        write("lib/simulation/simulation.cpp",
              "#include <tensorpool/device.hpp>\n#include <tensorpool/pool.hpp>\n");
        write("lib/simulation/simulation.hpp", "#pragma once\n");
        write("lib/planned/CMakeLists.txt", "tensorpool_sources(planning plan.cpp)\n");
        write("lib/planned/plan.cpp", "#include <tensorpool/pool.hpp>\n");
        write("lib/interpose/CMakeLists.txt",
              "add_library(interpose SHARED malloc.cpp ../pool/pool.cpp)\n");
        write("lib/interpose/malloc.cpp", "#include <tensorpool/device.hpp>\n");
        write("include/tensorpool/pool.hpp", "#pragma once\n");
        write("include/tensorpool/device.hpp", "#include <tensorpool/pool.hpp>\n");
        write("include/tensorpool/all.hpp",
              "#include <tensorpool/pool.hpp>\n#if __has_include(<tensorpool/device.hpp>)\n"
              "#include <tensorpool/device.hpp>\n#endif\n");
    }
    std::string found() const { return lines_of(check_components(root_)); }
};

TEST_F(PlantedComponentFault, CompleteProjectHasNoViolations) {
    EXPECT_EQ(found(), "");
}

TEST_F(PlantedComponentFault, ReportsSourceMissingFromCMakeLists) {
    write("lib/pool/gone.cpp", "");
    write("lib/pool/system/pages_other.cpp", "");
    EXPECT_EQ(found(),
              "lib/pool/gone.cpp:0: is listed in no CMakeLists.txt, so no build contains it\n"
              "lib/pool/system/pages_other.cpp:0: is listed in no CMakeLists.txt, so no "
              "build contains it\n");
}

TEST_F(PlantedComponentFault, ReportsListedFileThatDoesNotExist) {
    fs::remove(root_ / "lib/pool/system/pages_windows.cpp");
    fs::remove(root_ / "include/tensorpool/all.hpp");
    EXPECT_EQ(
        found(),
        "lib/pool/CMakeLists.txt:5: lists lib/pool/system/pages_windows.cpp, which does not "
        "exist\n"
        "lib/pool/CMakeLists.txt:8: lists include/tensorpool/all.hpp, which does not exist\n");
}

TEST_F(PlantedComponentFault, ReportsPublicHeaderListedNeverOrTwice) {
    write("include/tensorpool/detail/new.hpp", "");
    write("lib/device/CMakeLists.txt",
          "tensorpool_sources(device device.cpp)\ntensorpool_headers(device device.hpp)\n"
          "tensorpool_headers(device device.hpp)\n");
    EXPECT_EQ(
        found(),
        "include/tensorpool/detail/new.hpp:0: is listed in no tensorpool_headers(...), so "
        "it is not installed\n"
        "include/tensorpool/device.hpp:0: is listed in tensorpool_headers(...) more than once\n");
}

TEST_F(PlantedComponentFault, ReportsIncludeOfUnneededComponent) {
    write("lib/pool/pool.cpp", "#include \"device/streams.hpp\"\n");
    write("lib/device/device.cpp", "\n#include \"simulation/simulation.hpp\"\n");
    write("lib/planned/plan.cpp", "#include <tensorpool/device.hpp>\n");
    EXPECT_EQ(
        found(),
        "lib/device/device.cpp:2: component device includes simulation/simulation.hpp of "
        "component simulation, which it does not need\n"
        "lib/planned/plan.cpp:1: component planning includes tensorpool/device.hpp of "
        "component device, which it does not need\n"
        "lib/pool/pool.cpp:1: component core includes device/streams.hpp of component device, "
        "which it does not need\n");
}

TEST_F(PlantedComponentFault, ReportsIncludeOutsideHasInclude) {
    write("include/tensorpool/all.hpp",
          "#if __has_include(<tensorpool/pool.hpp>)\n#endif\n#include <tensorpool/device.hpp>\n");
    EXPECT_EQ(found(),
              "include/tensorpool/all.hpp:3: component core includes tensorpool/device.hpp of "
              "component device, which it does not need\n");
}

}  // namespace
}  // namespace tensorpool::architecture
