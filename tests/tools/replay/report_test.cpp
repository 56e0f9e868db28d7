#include "replay/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace tensorpool::command::replay {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

Subject subject() {
    Subject subject = {"a.tpt", 4711, "train", 2, 0, {}, "first"};
    subject.statistics = {.threads = 3,
                          .allocations = 10,
                          .deallocations = 8,
                          .resizes = 1,
                          .from_before = 4,
                          .never_freed = 2,
                          .allocated_bytes = 3 * mib,
                          .max_alive_bytes = 2 * mib};
    return subject;
}

std::vector<Result> results() {
    std::vector<Result> results(2);
    results[0].allocator = "pool";
    results[1].allocator = "glibc";
    for (Result& result : results) result.rounds.resize(5);
    results[0].elapsed_s = {1.5, 1.0};
    results[1].elapsed_s = {3.0, 2.0};
    results[1].peak_resident_bytes = {3.0 * mib, 1.25};
    results[1].waste = 1.5;
    return results;
}

TEST(Report, DescribesTheReplay) {
    const std::string text = report_text(subject(), results(), Sizes::iec);
    for (const char* const part :
         {"a.tpt: process 4711 (train) of 2, 3 threads", "10 allocations (3.00 MiB in total)",
          "maximum alive at once 2.00 MiB", "4 blocks from before", "2 blocks were never freed",
          "touched: first; medians of 5 rounds"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
    }
}

TEST(Report, ReportsACutFile) {
    Subject cut = subject();
    EXPECT_EQ(report_text(cut, results(), Sizes::iec).find("is cut"), std::string::npos);
    cut.cut_bytes = 99;
    EXPECT_NE(report_text(cut, results(), Sizes::iec).find("the file is cut: its last 99 bytes"),
              std::string::npos);
    const std::string json = report_json(cut, {});
    EXPECT_EQ(nlohmann::json::parse(json)["cut_bytes"], 99);
}

TEST(Report, HasARowForEachAllocator) {
    const std::string text = report_text(subject(), results(), Sizes::iec);
    EXPECT_NE(text.find("TIME:POOL"), std::string::npos) << text;
    const std::string row = text.substr(text.find("glibc"));
    for (const char* const part : {"3.000", "3.00 MiB", "1.50", "2.00", "1.25"}) {
        EXPECT_NE(row.find(part), std::string::npos) << part << " in " << row;
    }
}

TEST(Report, HasNoRatiosWithoutThePool) {
    std::vector<Result> alone = results();
    for (Result& result : alone) result.elapsed_s.to_pool.reset();
    EXPECT_EQ(report_text(subject(), alone, Sizes::iec).find("POOL"), std::string::npos);
}

TEST(Report, EscapesControlCharactersInNames) {
    Subject hostile = subject();
    hostile.process_name = "\x1b[2J";
    EXPECT_EQ(report_text(hostile, results(), Sizes::iec).find('\x1b'), std::string::npos);
}

TEST(Report, JsonContainsTheSubjectAndEachRound) {
    std::istringstream lines(report_json(subject(), results()));
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(nlohmann::json::parse(line)["most_alive_bytes"], 2 * mib);
    std::getline(lines, line);
    std::getline(lines, line);
    const nlohmann::json glibc = nlohmann::json::parse(line);
    EXPECT_EQ(glibc["contender"], "glibc");
    EXPECT_EQ(glibc["elapsed_s"]["to_pool"], 2.0);
    EXPECT_EQ(glibc["each_round"].size(), 5u);
    EXPECT_FALSE(std::getline(lines, line));
}

}  // namespace
}  // namespace tensorpool::command::replay
