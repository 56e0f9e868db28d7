#include "trim/outcome.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tensorpool::command::trim {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

Outcome answered() {
    return {.process = 4711,
            .seconds = 0.012,
            .before = {.capacity_bytes = 512 * mib, .resident_bytes = 551 * mib},
            .after = {.capacity_bytes = 12 * mib, .resident_bytes = 51 * mib},
            .trimmed_bytes = 500 * mib};
}

TEST(TrimOutcome, ShowsMemoryBeforeAndAfter) {
    EXPECT_EQ(to_text(answered(), Sizes::iec),
              "process 4711 released 500 MiB after 12 ms: capacity 12.0 MiB, was 512 MiB; resident "
              "51.0 MiB, was 551 MiB");
    EXPECT_EQ(complaint_of(answered(), Sizes::iec), "");
}

TEST(TrimOutcome, OmitsUnknownResidentSizes) {
    Outcome outcome = answered();
    outcome.after.resident_bytes = 0;
    EXPECT_EQ(to_text(outcome, Sizes::iec),
              "process 4711 released 500 MiB after 12 ms: capacity 12.0 MiB, was 512 MiB");
}

TEST(TrimOutcome, GivesAdviceIfTheProcessDidNotAnswer) {
    Outcome outcome = answered();
    outcome.trimmed_bytes.reset();
    outcome.after = outcome.before;
    outcome.seconds = 3;
    const std::string complaint = complaint_of(outcome, Sizes::iec);
    EXPECT_TRUE(
        complaint.starts_with("process 4711 did not answer within 3.0 s and holds "
                              "512 MiB"))
        << complaint;
    EXPECT_NE(complaint.find("TENSORPOOL_RETAIN_BACKGROUND=on"), std::string::npos);
    EXPECT_EQ(nlohmann::json::parse(to_json(outcome))["answered"], false);
}

TEST(TrimOutcome, IsOneObjectOfJson) {
    const auto json = nlohmann::json::parse(to_json(answered()));
    EXPECT_EQ(json["answered"], true);
    EXPECT_EQ(json["trimmed_bytes"], 500 * mib);
    EXPECT_EQ(json["capacity_bytes_before"], 512 * mib);
    EXPECT_EQ(json["resident_bytes"], 51 * mib);
}

}  // namespace
}  // namespace tensorpool::command::trim
