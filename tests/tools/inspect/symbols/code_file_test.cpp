
#include <gtest/gtest.h>
#include <link.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/symbols/frame_names.hpp"
#include "tools/inspect/made_recording.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::symbols {

// Not in an anonymous namespace, because its symbol is looked up.
[[gnu::noinline]] int function_to_be_found(int value) {
    return value * 3 + 1;
}

namespace {

constexpr const char* own_path = "/proc/self/exe";

/// Returns an address of this program as an offset of its symbols.
std::uint64_t own_offset() {
    std::uint64_t base = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* result) {
            *static_cast<std::uint64_t*>(result) = info->dlpi_addr;
            return 1;  // the program itself comes first
        },
        &base);
    return reinterpret_cast<std::uint64_t>(&function_to_be_found) - base;
}

TEST(CodeFile, FindsAFunctionAndItsLine) {
#ifndef TENSORPOOL_COMMAND_HAS_LIBDW
    GTEST_SKIP() << "install the Debian package libdw-dev";
#endif
    const CodeFile file(own_path);
    ASSERT_EQ(file.problem(), "");
    const CodeLocation location = file.find(own_offset());
    EXPECT_EQ(location.function, "tensorpool::command::symbols::function_to_be_found(int)");
    EXPECT_TRUE(location.file.ends_with("code_file_test.cpp")) << location.file;
    EXPECT_GT(location.line, 10);
    EXPECT_LT(location.line, 30);
}

TEST(CodeFile, FindsNothingBeyondTheFile) {
    const CodeLocation location = CodeFile(own_path).find(std::uint64_t{1} << 47);
    EXPECT_EQ(location.function, "");
    EXPECT_EQ(location.file, "");
}

TEST(CodeFile, OpensRegularFilesOnly) {
    const photos::TemporaryFolder folder;
    const std::string pipe = folder.path() / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const int opened = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    ASSERT_GE(inotify_add_watch(opened, pipe.c_str(), IN_OPEN), 0);
    EXPECT_EQ(CodeFile(pipe).problem(), "is not a regular file");
    char event[4096];
    EXPECT_EQ(read(opened, event, sizeof event), -1);
    close(opened);
    EXPECT_EQ(CodeFile("/dev/zero").problem(), "is not a regular file");
    EXPECT_EQ(CodeFile("/dev").problem(), "is not a regular file");
    EXPECT_EQ(CodeFile("relative").problem(), "is not an absolute path");
    EXPECT_EQ(CodeFile("").problem(), "is not an absolute path");
    EXPECT_EQ(CodeFile("/nowhere").problem(), "No such file or directory");
}

TEST(CodeFile, AcceptsAFileThatIsNotAProgram) {
    const photos::TemporaryFolder folder;
    const CodeFile file(folder.file("text",
                                    "\x7f"
                                    "ELF and then nothing that an ELF file has"));
    EXPECT_NE(file.problem(), "");
    EXPECT_EQ(file.find(0).function, "");
}

TEST(FrameNames, ShowFunctionFileAndLine) {
    EXPECT_EQ(to_text({"/lib/libfoo.so", 0x12, {"f(int)", "/src/foo.cpp", 7}, false}),
              "f(int) at foo.cpp:7");
    EXPECT_EQ(to_text({"/lib/libfoo.so", 0x12, {"f(int)", "", 0}, false}), "f(int) in libfoo.so");
    EXPECT_EQ(to_text({"/lib/libfoo.so", 0x12, {}, false}), "libfoo.so+0x12");
}

TEST(FrameNames, IgnoreFilesThatChanged) {
    const photos::TemporaryFolder folder;
    trace::testing::MadeRecording made;
    const auto module = made.module(folder.file("program", "new"));
    made.recording().begun_unix_ns = 1'000'000'000;  // 1970
    FrameNames names(made.recording());
    EXPECT_EQ(to_text(names.name({module, 0x10})), "program+0x10");
    EXPECT_EQ(to_text(names.name({module, 0x11})), "program+0x11");
    ASSERT_EQ(names.problems().size(), 1U);
    EXPECT_TRUE(names.problems()[0].ends_with("program: changed after the recording began"));
}

TEST(FrameNames, SkipAllocatorsForASite) {
    trace::testing::MadeRecording made;
    const auto pool = made.module("/usr/lib/libtensorpool.so.1");
    const auto program = made.module("/nowhere/program");
    FrameNames names(made.recording());
    EXPECT_TRUE(names.name({pool, 0x10}).internal);
    EXPECT_FALSE(names.name({program, 0x10}).internal);
}

TEST(FrameNames, FindTheCallerOfThePool) {
    trace::testing::MadeRecording made;
    const auto pool = made.module("/usr/lib/libtensorpool.so.1");
    const auto program = made.module("/nowhere/program");
    const auto called = made.stack({{pool, 1}, {pool, 2}, {program, 3}, {pool, 4}});
    const auto all_own = made.stack({{pool, 1}, {pool, 2}});
    const auto frames = frames_of_caller(made.recording(), called);
    ASSERT_EQ(frames.size(), 2U);
    EXPECT_EQ(frames[0].offset, 3U);
    EXPECT_EQ(frames_of_caller(made.recording(), all_own).size(), 2U);
    EXPECT_EQ(frames_of_caller(made.recording(), 0).size(), 0U);
}

TEST(FrameNames, AcceptAFrameWithoutModule) {
    trace::testing::MadeRecording made;
    FrameNames names(made.recording());
    EXPECT_EQ(to_text(names.name({99, 0x10})), "?+0x10");
}

}  // namespace
}  // namespace tensorpool::command::symbols
