#include <gtest/gtest.h>
#include <link.h>

#include <filesystem>
#include <regex>

#include "export/formats.hpp"
#include "tools/export/exported.hpp"
#include "tools/inspect/made_recording.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::export_ {

// Outside the anonymous namespace, so that its symbol is exported.
[[gnu::noinline]] int function_that_allocates(int value) {
    return value * 5 + 2;
}

namespace {

using trace::testing::MadeRecording;

std::string profile_of(MadeRecording& made, At at) {
    const History history(made.recording());
    return testing::written(
        [&](WrittenFile& file) { write_heap_profile(history, moment_of(history, at), file); });
}

TEST(HeapProfile, CountsByStack) {
    MadeRecording made;
    made.recording().processes[0].stack_interval = 1000;
    const auto module = made.module("/nowhere/a b.so");
    const auto stack = made.stack({{module, 0x1010}, {module, 0x2020}});
    made.allocate(0x10000, 500).stack = stack;
    made.allocate(0x20000, 700).stack = stack;
    made.deallocate(0x10000, 512);
    made.allocate(0x30000, 9);  // not sampled
    const std::string text = profile_of(made, At::end);
    EXPECT_NE(text.find("heap profile:      1:      700 [     2:     1200] @ heap_v2/1000\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("0x0000000000001000 a b.so+0x1010\n0x0000000000002000 a b.so+0x2020\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("\n     1:      700 [     2:     1200] @ 0x1000 0x2001\n"),
              std::string::npos)
        << text;
}

TEST(HeapProfile, OfThePeakOmitsLaterBlocks) {
    MadeRecording made;
    const auto stack = made.stack({{0, 0x1010}});
    made.allocate(0x10000, 500).stack = stack;
    made.deallocate(0x10000, 512);
    made.allocate(0x10000, 100).stack = stack;
    EXPECT_NE(profile_of(made, At::peak).find("heap profile:      1:      500 [     1:      500]"),
              std::string::npos);
}

bool has_jeprof() {
    return std::filesystem::exists("/usr/bin/jeprof");
}

#ifdef TENSORPOOL_COMMAND_HAS_LIBDW
TEST(HeapProfile, IsReadByJeprofWithItsSymbols) {
    if (!has_jeprof()) GTEST_SKIP() << "install the Debian package libjemalloc-dev";
    std::uint64_t base = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* result) {
            *static_cast<std::uint64_t*>(result) = info->dlpi_addr;
            return 1;  // the program itself comes first
        },
        &base);
    const std::string own = std::filesystem::read_symlink("/proc/self/exe");
    MadeRecording made;
    made.recording().processes[0].stack_interval = 1 << 20;
    const auto module = made.module(own);
    const auto address = reinterpret_cast<std::uint64_t>(&function_that_allocates) - base;
    made.allocate(0x10000, 3 << 20).stack = made.stack({{module, address}, {module, address + 4}});
    const photos::TemporaryFolder folder;
    const std::string path = folder.file("a.heap", profile_of(made, At::peak));
    const auto printed = testing::printed_by("jeprof --text '" + path + "' 2>&1");
    EXPECT_EQ(printed.code, 0) << printed.text;
    EXPECT_NE(printed.text.find("function_that_allocates"), std::string::npos) << printed.text;
    // 3 MiB, sampled with probability 1 - exp(-3), are scaled to 3.16 MiB.
    EXPECT_NE(printed.text.find("Total: 3.2 MB"), std::string::npos) << printed.text;
}
#endif

TEST(HeapProfile, WithoutStacksIsReadByJeprofByPoolAndScope) {
    if (!has_jeprof()) GTEST_SKIP() << "install the Debian package libjemalloc-dev";
    MadeRecording made;
    const auto scope = made.source(TraceSource::scope, "forward--pass\n");
    const auto pool = made.source(TraceSource::pool, "weights");
    made.allocate(0x10000, 2 << 20);
    made.begin_scope(scope);
    made.allocate(0x800000, 3 << 20, pool);
    const photos::TemporaryFolder folder;
    const std::string path = folder.file("a.heap", profile_of(made, At::peak));
    const auto printed = testing::printed_by("jeprof --text '" + path + "' 2>&1");
    EXPECT_EQ(printed.code, 0) << printed.text;
    EXPECT_NE(printed.text.find("Total: 5.0 MB"), std::string::npos) << printed.text;
    EXPECT_TRUE(std::regex_search(printed.text, std::regex("3\\.0 .* weights"))) << printed.text;
    EXPECT_TRUE(std::regex_search(printed.text, std::regex("forward-pass\\?"))) << printed.text;
}

TEST(HeapProfile, NamesLinesOfPython) {
    MadeRecording made;
    made.recording().processes[0].stack_interval = 1000;
    const auto numpy = made.module("/usr/lib/numpy.so");
    const auto python = made.module("python:train@/home/me/train.py");
    made.allocate(0x10000, 500).stack = made.stack({{numpy, 0x10}, {python, 12}});
    const std::string text = profile_of(made, At::end);
    EXPECT_NE(text.find("0x0000000000001000 numpy.so+0x10\n"), std::string::npos) << text;
    EXPECT_NE(text.find("0x0000000000002000 train at train.py:12\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\n     1:      500 [     1:      500] @ 0x1000 0x2001\n"),
              std::string::npos)
        << text;
}

}  // namespace
}  // namespace tensorpool::command::export_
