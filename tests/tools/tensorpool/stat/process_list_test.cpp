#include "stat/process_list.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/tensorpool/made_up_data.hpp"

namespace tensorpool::command {
namespace {

std::vector<ListedProcess> two() {
    return {{{4711, "train", true, ""}, made_up_snapshot()},
            {{12, "secret", false, "it is another user's; use sudo"}, std::nullopt}};
}

TEST(ProcessList, ShowsMemoryAndWhyProcessesCannotBeRead) {
    EXPECT_EQ(list_text(two(), Sizes::iec, 80),
              "NAME   PID POOLS ARENAS  IN USE CAPACITY    PEAK LIMIT DEVICES DEV USE DEV CAP\n"
              "train 4711     2      3 116 MiB  230 MiB 221 MiB  none       1 300 MiB 640 MiB\n"
              "12 (secret) cannot be read: it is another user's; use sudo\n");
}

TEST(ProcessList, HasNoTitlesIfNoneCanBeRead) {
    EXPECT_EQ(list_text({two()[1]}, Sizes::iec, 80),
              "12 (secret) cannot be read: it is another user's; use sudo\n");
}

TEST(ProcessList, ANameCannotControlTheTerminal) {
    std::vector<ListedProcess> listed = two();
    listed[0].process.name = "\x1b]0;x\x07";
    listed[1].process.name = "\x1b[31m";
    EXPECT_EQ(list_text(listed, Sizes::iec, 80).find('\x1b'), std::string::npos);
}

TEST(ProcessList, JsonHasTheSameValues) {
    const auto json = nlohmann::json::parse(list_json(two()[0]));
    EXPECT_EQ(json["process"], 4711);
    EXPECT_EQ(json["pools"], 2);
    EXPECT_EQ(json["in_use_bytes"], 116u << 20);
    EXPECT_EQ(json["planned"], 1);
    EXPECT_EQ(json["devices"], 1);
    EXPECT_EQ(json["device_in_use_bytes"], 300u << 20);
    EXPECT_EQ(json["device_capacity_bytes"], 640u << 20);
    const auto refused = nlohmann::json::parse(list_json(two()[1]));
    EXPECT_EQ(refused["readable"], false);
    EXPECT_EQ(refused["problem"], "it is another user's; use sudo");
    EXPECT_FALSE(refused.contains("pools"));
}

TEST(ProcessList, JsonAcceptsNamesOfAnyBytes) {
    ListedProcess listed = two()[0];
    listed.process.name = "\xff\x01\"";
    EXPECT_TRUE(nlohmann::json::accept(list_json(listed)));
}

}  // namespace
}  // namespace tensorpool::command
