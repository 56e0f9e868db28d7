#include <gtest/gtest.h>

#include "tools/profile/made_profile.hpp"
#include "top/top_screen.hpp"

namespace tensorpool::command {
namespace {

using profile::testing::MadeProfile;

void add(TopData& data, const HeapProfile& profile) {
    add_profile(data, profile::name_frames(profile, profile::Value::live));
}

std::vector<std::string> texts(const Table& table, std::size_t row) {
    std::vector<std::string> all;
    for (const Cell& cell : table.rows.at(row)) all.push_back(cell.text);
    return all;
}

TEST(TopSites, HaveTheirLineAndTheirShare) {
    TopData data;
    add(data, profile::testing::two_sites());
    const Table table = sites_table(data, Sizes::iec);
    ASSERT_EQ(table.rows.size(), 2U);
    using Texts = std::vector<std::string>;
    EXPECT_EQ(texts(table, 0), (Texts{"load at train.py:12", "5.86 KiB", "0", "75.0%", "60"}));
    EXPECT_EQ(texts(table, 1), (Texts{"step at train.py:20", "1.95 KiB", "0", "25.0%", "20"}));
    EXPECT_EQ(table.keys, (Texts{"2", "1"}));
}

TEST(TopSites, ChangeIsCountedFromTheFirstProfileOrTheReset) {
    TopData data;
    HeapProfile profile = profile::testing::two_sites();
    add(data, profile);
    profile.sites[0].live_bytes = 1000;
    ProfileSite& added = profile.sites.emplace_back();
    added.id = 9;
    added.live_bytes = 512;
    add(data, profile);
    const auto changes = [&] {
        std::vector<std::string> all;
        for (const auto& row : sites_table(data, Sizes::bytes).rows) all.push_back(row[2].text);
        return all;
    };
    EXPECT_EQ(changes(), (std::vector<std::string>{"0", "-1000", "+512"}));
    reset_highest(data);
    EXPECT_EQ(changes(), (std::vector<std::string>{"0", "0", "0"}));
}

TEST(TopSites, NamesCannotControlTheTerminal) {
    MadeProfile made;
    made.site({made.python("\x1b[2J", 1)}, 100);
    TopData data;
    add(data, made.profile());
    EXPECT_EQ(sites_table(data, Sizes::iec).rows.at(0)[0].text, "?[2J at train.py:1");
    EXPECT_EQ(stack_lines(data, "1"), (std::vector<std::string>{"?[2J at train.py:1"}));
}

TEST(TopSites, ASiteThatIsGoneHasNoStack) {
    TopData data;
    EXPECT_TRUE(stack_lines(data, "1").empty());
    add(data, profile::testing::two_sites());
    EXPECT_TRUE(stack_lines(data, "77").empty());
}

}  // namespace
}  // namespace tensorpool::command
