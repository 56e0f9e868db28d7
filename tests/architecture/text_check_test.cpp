#include "architecture/text_check.hpp"

#include "architecture/planted_project.hpp"

namespace tensorpool::architecture {
namespace {

TEST(Text, ThisProjectHasNoViolations) {
    EXPECT_EQ(lines_of(check_text(TENSORPOOL_SOURCE_FOLDER)), "");
}

class PlantedText : public PlantedProject {
protected:
    PlantedText() : PlantedProject("text") {}
    std::string found() const { return lines_of(check_text(root_)); }
};

TEST_F(PlantedText, ReadmeMayHave180Lines) {
    write("README.md", std::string(180, '\n'));
    EXPECT_EQ(found(), "");
    write("README.md", std::string(181, '\n'));
    EXPECT_EQ(found(), "README.md:181: has 181 lines; at most 180\n");
}

TEST_F(PlantedText, ReportsWordsInDocumentsAndSources) {
    write("lib/README.md", "fine\nWhoever reads this\n");
    write("lib/pool.hpp", "int nobody_reads;\nint nobodys;  // REQUIRES: as\tabove.\n");
    write("perf/results/table.md", "The bounds are as above.\n");
    EXPECT_EQ(found(),
              "lib/README.md:2: says 'whoever'\n"
              "lib/pool.hpp:1: says 'nobody'\n"
              "lib/pool.hpp:2: says 'as above'\n");
}

TEST_F(PlantedText, ReportsFilesThatDoNotExist) {
    write("lib/pool.hpp", "");
    write("lib/README.md",
          "`pool.hpp`, `lib/pool.hpp` and `*_test.cpp`\n`deeper/pool.hpp` `gone.cpp`\n");
    EXPECT_EQ(found(),
              "lib/README.md:2: names 'deeper/pool.hpp', no file\n"
              "lib/README.md:2: names 'gone.cpp', no file\n");
}

}  // namespace
}  // namespace tensorpool::architecture
