#include "formats/trace/recording.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>

#include "formats/trace/trace_file.hpp"

namespace tensorpool::command::trace {
namespace {

const std::string head = "Thread,Time,Action,Pointer,Size,Stream\n";

Recording read(const std::string& lines) {
    const std::string text = head + lines;
    return read_recording(std::as_bytes(std::span(text)), "rmm.csv");
}

std::string problem_of(const std::string& lines) {
    try {
        read(lines);
        return {};
    } catch (const TraceError& error) {
        return error.what();
    }
}

TEST(RmmLog, ReadsEachCall) {
    const Recording recording = read(
        "140,23:59:59.500000,allocate,0x7f0000000000,1024,0x0\n"
        "141,23:59:59.500010,allocate failure,(nil),99,0x0\n"
        "140,23:59:59.700000,free,0x7f0000000000,1024,0x0\n");
    ASSERT_EQ(recording.calls.size(), 3U);
    EXPECT_EQ(recording.calls[0].action, TraceAction::allocate);
    EXPECT_EQ(recording.calls[0].time_ns, 0U);
    EXPECT_EQ(recording.calls[0].address, 0x7f0000000000U);
    EXPECT_EQ(recording.calls[0].bytes, 1024U);
    EXPECT_EQ(recording.calls[1].action, TraceAction::refuse);
    EXPECT_EQ(recording.calls[1].time_ns, 10'000U);
    EXPECT_EQ(recording.calls[1].bytes, 99U);
    EXPECT_EQ(recording.calls[2].action, TraceAction::deallocate);
    EXPECT_EQ(recording.calls[2].time_ns, 200'000'000U);
    ASSERT_EQ(recording.threads.size(), 2U);
    EXPECT_EQ(recording.threads[recording.calls[1].thread].number, 141U);
    EXPECT_EQ(recording.sources.at(recording.calls[0].source).name, "rmm");
    const auto lifetimes = lifetimes_of(recording);
    ASSERT_EQ(lifetimes.size(), 1U);
    EXPECT_EQ(lifetimes[0].begin, 0U);
    EXPECT_EQ(lifetimes[0].end, 2U);
}

TEST(RmmLog, ReadsOlderVersionsAndOtherLineEndings) {
    const Recording recording = read(
        "1,00:00:01:000001,allocate,0x1,1,0\r\n"
        "\r\n"
        "1,00:00:01:000003,free,0x1,1,0");
    ASSERT_EQ(recording.calls.size(), 2U);
    EXPECT_EQ(recording.calls[1].time_ns, 2000U);
}

TEST(RmmLog, ContinuesAfterMidnight) {
    const Recording recording = read(
        "1,23:59:59.000000,allocate,0x1,1,0\n"
        "1,00:00:01.000000,free,0x1,1,0\n"
        "1,00:00:00.900000,allocate,0x1,1,0\n"  // read the clock first
        "1,23:59:59.000000,free,0x1,1,0\n"
        "1,00:00:00.000000,allocate,0x1,1,0\n");
    std::vector<std::uint64_t> seconds;
    for (const Call& call : recording.calls) seconds.push_back(call.time_ns / 1'000'000'000);
    EXPECT_EQ(seconds, (std::vector<std::uint64_t>{0, 2, 2, 86'400, 86'401}));
}

TEST(RmmLog, LinesAcrossBuffersAreComplete) {
    std::string lines;
    constexpr std::size_t count = 20'000;  // 900 KB
    for (std::size_t i = 0; i < count; ++i) {
        lines += "1,01:02:03.000000,allocate,0x" + std::to_string(10'000'000 + i) + ",1024,0x0\n";
    }
    const Recording recording = read(lines);
    ASSERT_EQ(recording.calls.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(recording.calls[i].address,
                  std::stoull(std::to_string(10'000'000 + i), nullptr, 16));
    }
}

TEST(RmmLog, ErrorsNameTheByteWhatWasFoundAndWhatWasExpected) {
    const std::string good = "1,01:02:03.000000,allocate,0x10,1024,0x0\n";
    const auto expect = [&](const std::string& line, const std::string& what) {
        const std::string problem = problem_of(good + line);
        const std::string where = "rmm.csv: at byte " + std::to_string(head.size() + good.size());
        EXPECT_TRUE(problem.starts_with(where)) << problem;
        EXPECT_NE(problem.find(what), std::string::npos) << problem;
    };
    expect("1,2,3", "found \"1,2,3\"; expected six columns");
    expect("1,01:02:03.000000,allocate,0x10,1024,0x0,7", "expected six columns");
    expect("x,01:02:03.000000,free,0x10,1024,0", "found \"x\"; expected a thread id");
    expect("1,25:02:03.000000,free,0x10,1024,0", "found \"25:02:03.000000\"; expected a time");
    expect("1,01:02:03,free,0x10,1024,0", "found \"01:02:03\"; expected a time");
    expect("1,01:02:03.000000,freed,0x10,1024,0", "found \"freed\"; expected allocate");
    expect("1,01:02:03.000000,free,16,1024,0", "found \"16\"; expected a pointer");
    expect("1,01:02:03.000000,free,0x,1024,0", "found \"0x\"; expected a pointer");
    expect("1,01:02:03.000000,free,0x10,-1,0", "found \"-1\"; expected a size");
    expect("1,01:02:03.000000,free,0x10,18446744073709551615,0", "expected a size");
    expect(std::string(10'000, 'x'), "found \"" + std::string(80, 'x') + "\"; expected six");
    expect("\x1b[2J\n", "found \"?[2J\"");
}

}  // namespace
}  // namespace tensorpool::command::trace
