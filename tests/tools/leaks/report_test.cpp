#include "leaks/observation.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::leaks {
namespace {

using profile::testing::MadeProfile;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t mib = 1 << 20;

/// Two iterations per second: `load` leaks 1 MiB in each, `step` keeps 9 MiB at first, and the last
/// site is steady.
Observation observe(const std::string& function = "load", const std::string& name = "train") {
    Observation observation;
    for (std::uint64_t i = 0; i <= 20; ++i) {
        MadeProfile made;
        made.profile().process_name = name;
        made.profile().time_unix_ns = 1'700'000'000'000'000'000 + i * 500'000'000;
        const auto unused = made.frame("/nowhere/unused.so", 1);
        const auto library = made.frame("/nowhere/lib.so", 0x10);
        const auto main = made.python("<module>", 3);
        const auto load = made.python(function, 12);
        const auto step = made.python("step", 20);
        made.site({step, main}, std::min<std::uint64_t>(i, 3) * 3 * mib);
        made.site({library, load, main}, (i + 1) * mib);
        made.site({unused}, mib);
        for (ProfileSite& site : made.profile().sites) site.allocated_blocks = 3;  // all sampled
        observation.add(made.profile(), i);
    }
    return observation;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(LeaksReport, ListsTheSitesThatGrowWithTheStackOfEachLeak) {
    EXPECT_EQ(
        to_text(judge(observe(), {}), Sizes::iec),
        "process 4711 (train): 20 iterations by marks in 10 s, one sample per 512 KiB\n"
        "2 of 3 sites grow; 1 leak\n"
        "verdict per iteration         growth     live oldest median age allocated at\n"
        "leak         1.00 MiB +/- 0 20.0 MiB 21.0 MiB     19         10 load at train.py:12\n"
        "    lib.so+0x10\n"
        "    load at train.py:12\n"
        "    <module> at train.py:3\n"
        "warm-up       461 KiB +/- 0 9.00 MiB 9.00 MiB     19         18 step at train.py:20");
}

TEST(LeaksReport, ReportsThatNoSiteGrows) {
    Observation observation;
    for (std::uint64_t i = 0; i <= 2; ++i) observation.add(profile::testing::two_sites(), 2 * i);
    Pace pace;
    pace.seconds = 0.5;
    EXPECT_EQ(to_text(judge(observation, pace), Sizes::iec),
              "process 4711 (train): 4 iterations of 0.5 s in 0 s, 3 profiles, one sample per 512 "
              "KiB\nnone of 2 sites grows");
}

TEST(LeaksReport, HasAllValuesAsJson) {
    const Json json = Json::parse(to_json(judge(observe(), {})));
    EXPECT_EQ(json["process"], 4711);
    EXPECT_EQ(json["iterations"], 20);
    EXPECT_EQ(json["profiles"], 21);
    EXPECT_EQ(json["seconds"], 10.0);
    EXPECT_EQ(json["leaks"], 1);
    EXPECT_EQ(json["steady_sites"], 1);
    ASSERT_EQ(json["sites"].size(), 2U);
    const Json& leak = json["sites"][0];
    EXPECT_EQ(leak["verdict"], "leak");
    EXPECT_EQ(leak["bytes_per_iteration"], 1.0 * mib);
    EXPECT_EQ(leak["growth_bytes"], 20.0 * mib);
    EXPECT_EQ(leak["live_bytes"], 21 * mib);
    EXPECT_EQ(leak["live_bytes_by_profile"].size(), 21U);
    EXPECT_EQ(leak["line"], "load at train.py:12");
    EXPECT_EQ(leak["stack"].size(), 3U);
}

TEST(LeaksReport, MakesNamesSafe) {
    const Observation observation = observe("f\x1b[31m\n\xff", "a\x1b[2J");
    Pace pace;
    pace.mark = "\x1b]0;";
    const std::string text = to_text(judge(observation, pace), Sizes::iec);
    EXPECT_FALSE(has(text, "\x1b")) << text;
    EXPECT_TRUE(has(text, "(a?[2J): 20 iterations by marks ?]0; in")) << text;
    EXPECT_TRUE(has(text, "\n    f?[31m?? at train.py:12\n")) << text;
    EXPECT_NE(Json::parse(to_json(judge(observation, pace)), nullptr, false).type(),
              Json::value_t::discarded);
}

}  // namespace
}  // namespace tensorpool::command::leaks
