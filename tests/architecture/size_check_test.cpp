#include "architecture/size_check.hpp"

#include "architecture/planted_project.hpp"

namespace tensorpool::architecture {
namespace {

TEST(Sizes, ThisProjectHasNoViolations) {
    EXPECT_EQ(lines_of(check_sizes(TENSORPOOL_SOURCE_FOLDER)), "");
}

/// Returns a class with so many functions of different kinds.
std::string class_of(const std::string& head, std::size_t functions) {
    std::string text = "class " + head + " {\npublic:\n    A();\n";
    for (std::size_t i = 0; i < functions; ++i)
        text += i % 2 == 0 ? "    void f(int, char);\n"
                           : "private:\n    static int g() { return 1; }\n";
    return text + "};\n";
}

/// A project in a folder of its own, whose class and folder are as large as they may be.
class PlantedSize : public PlantedProject {
protected:
    PlantedSize() : PlantedProject("size") {
        write("lib/pool/pool.hpp", "namespace pool {\n" + class_of("Pool", 30) + "}\n");
        write("include/tensorpool/arena.hpp", class_of("Arena", 30));
        for (std::size_t i = 0; i < 40; ++i) {
            write("lib/pool/" + std::to_string(i) + ".cpp", "");
            write("tests/pool/" + std::to_string(i) + "_test.cpp", "");
            write("tests/pool/" + std::to_string(i) + ".cpp", "");
        }
    }
    void list(const std::string& lines) { write("tests/architecture/large_interfaces.txt", lines); }
    std::string found() const { return lines_of(check_sizes(root_)); }
};

TEST_F(PlantedSize, LargestAllowedProjectHasNoViolations) {
    EXPECT_EQ(found(), "");
}

TEST_F(PlantedSize, ReportsClassOf31Functions) {
    write("lib/pool/pool.hpp", "namespace pool {\n" + class_of("Pool", 31) + "}\n");
    EXPECT_EQ(found(),
              "lib/pool/pool.hpp:2: class pool::Pool has 31 member functions; at most 30\n");
    write("lib/pool/pool.hpp", "");
    write("lib/pool/0.cpp", "namespace {\nstruct Outer {\n" + class_of("Pool", 31) + "};\n}\n");
    EXPECT_EQ(found(), "lib/pool/0.cpp:3: class Outer::Pool has 31 member functions; at most 30\n");
}

TEST_F(PlantedSize, CountsInheritedFunctionsOnce) {
    write("lib/pool/base.hpp",
          "namespace base {\nstruct Source {\n    virtual void f() = 0;\n};\n}\n");
    write("lib/pool/pool.hpp",
          "namespace pool {\n" + class_of("Large : public base::Source", 30) + "}\n");
    EXPECT_EQ(found(),
              "lib/pool/pool.hpp:2: class pool::Large has 31 member functions; at most 30\n");
    write("lib/pool/pool.hpp", class_of("Middle : public base::Source", 29) +
                                   "class Large : public Middle {\n    void f() override;\n};\n");
    EXPECT_EQ(found(), "");
    write("lib/pool/pool.hpp", class_of("Large : std::Source<Large>", 30));
    EXPECT_EQ(found(), "");
}

TEST_F(PlantedSize, ReportsFolderOf41FilesOfAKind) {
    write("lib/pool/other.cpp", "");
    write("tests/pool/other_test.cpp", "");
    EXPECT_EQ(found(),
              "lib/pool:0: holds 41 files *.cpp; at most 40\n"
              "tests/pool:0: holds 41 files *_test.cpp; at most 40\n");
    list("files lib/pool .cpp no reason is enough\n");
    EXPECT_EQ(
        found(),
        "lib/pool:0: holds 41 files *.cpp; at most 40, and only folders of public headers may "
        "be listed as interfaces\n"
        "tests/pool:0: holds 41 files *_test.cpp; at most 40\n");
}

TEST_F(PlantedSize, FoldersOfPublicHeadersMayBeListed) {
    for (std::size_t i = 0; i < 40; ++i)
        write("include/tensorpool/" + std::to_string(i) + ".hpp", "");
    EXPECT_EQ(found(), "include/tensorpool:0: holds 41 files *.hpp; at most 40\n");
    list("files include/tensorpool .hpp callers include each by its path\n");
    EXPECT_EQ(found(), "");
}

TEST_F(PlantedSize, OnlyPublicClassesMayBeListed) {
    write("lib/pool/pool.hpp", "namespace pool {\n" + class_of("Pool", 31) + "}\n");
    write("include/tensorpool/arena.hpp", class_of("Arena", 31));
    list(
        "# Comments and empty lines are skipped.\n\nclass Arena the public arena\n"
        "class pool::Pool no reason is enough\n");
    EXPECT_EQ(found(),
              "lib/pool/pool.hpp:2: class pool::Pool has 31 member functions; at most 30, and only "
              "public classes may be listed as interfaces\n");
    write("lib/pool/pool.hpp", "");
    write("include/tensorpool/detail/pool.hpp",
          "namespace pool {\n" + class_of("Pool", 31) + "}\n");
    EXPECT_EQ(found(),
              "include/tensorpool/detail/pool.hpp:2: class pool::Pool has 31 member functions; at "
              "most 30, and only public classes may be listed as interfaces\n");
}

TEST_F(PlantedSize, ReportsListedLinesThatAreWrongOrNotNeeded) {
    write("include/tensorpool/arena.hpp", class_of("Arena", 31));
    list("class Arena\nclass Gone it was large\nfiles lib/pool .cpp it was full\nfolder lib a\n");
    EXPECT_EQ(
        found(),
        "tests/architecture/large_interfaces.txt:1: 'Arena' has no reason\n"
        "tests/architecture/large_interfaces.txt:2: 'Gone' is not over the limit: remove the line\n"
        "tests/architecture/large_interfaces.txt:3: 'lib/pool .cpp' is not over the limit: "
        "remove the line\n"
        "tests/architecture/large_interfaces.txt:4: 'folder' is neither 'class' nor 'files'\n");
}

TEST_F(PlantedSize, ReportsFileThatCannotBeRead) {
    write("lib/pool/0.cpp", "struct A {\n    void f() {\n};\n");
    EXPECT_EQ(found(), "lib/pool/0.cpp:0: cannot be read: line 1: '{' without '}'\n");
}

}  // namespace
}  // namespace tensorpool::architecture
