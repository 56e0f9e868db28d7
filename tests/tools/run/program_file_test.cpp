#include "formats/launch/launch.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "tools/temporary_folder.hpp"

namespace tensorpool::command::launch {
namespace {

void write_script(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0755);
}

TEST(ProgramFile, IsFoundAlongPath) {
    EXPECT_EQ(find_program("./here"), "./here");
    EXPECT_EQ(find_program("sh").substr(find_program("sh").size() - 3), "/sh");
    EXPECT_EQ(find_program("no-such-program-at-all"), "");
}

TEST(ProgramFile, ADynamicProgramCanBePreloaded) {
    EXPECT_EQ(problem_of_preloading(TENSORPOOL_PLAIN_SUBJECT), "");
    EXPECT_EQ(problem_of_preloading("/bin/sh"), "");
    EXPECT_EQ(problem_of_preloading("/nowhere"), "");
}

TEST(ProgramFile, AStaticProgramCannotBePreloaded) {
    EXPECT_NE(problem_of_preloading(TENSORPOOL_STATIC_SUBJECT).find("statically linked"),
              std::string::npos);
}

TEST(ProgramFile, AProgramOfAnotherCLibraryCannotBePreloaded) {
    EXPECT_EQ(problem_of_preloading(TENSORPOOL_FOREIGN_SUBJECT), TENSORPOOL_FOREIGN_SUBJECT
              " is started by /lib/ld-musl-x86_64.so.1, the loader of another C library than "
              "tensorpool's");
}

TEST(ProgramFile, AProgramWithASanitizersMallocIsNotPreloaded) {
    EXPECT_EQ(problem_of_preloading(TENSORPOOL_SANITIZED_SUBJECT), TENSORPOOL_SANITIZED_SUBJECT
              " is built with a sanitizer, whose malloc liblsan.so contains");
}

TEST(ProgramFile, AScriptIsCheckedByItsInterpreter) {
    const photos::TemporaryFolder folder;
    const std::string path = folder.path() / "script";
    write_script(path, "#!/bin/sh\n");
    EXPECT_EQ(problem_of_preloading(path), "");
    write_script(path, "#! " TENSORPOOL_STATIC_SUBJECT " -x\n");
    EXPECT_NE(problem_of_preloading(path).find("statically linked"), std::string::npos);
    write_script(path, "#!" + path + "\n");  // itself
    EXPECT_EQ(problem_of_preloading(path), "");
}

}  // namespace
}  // namespace tensorpool::command::launch
