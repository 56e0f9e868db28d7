#include <gtest/gtest.h>

#include "common/printable.hpp"
#include "formats/profile/formats.hpp"
#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::profile {
namespace {

using testing::MadeProfile;

std::string text_of(HeapProfile profile, const TextOptions& options = {},
                    Value value = Value::live) {
    return to_text(name_frames(std::move(profile), value), options);
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(ProfileTable, ListsTheSites) {
    EXPECT_EQ(text_of(testing::two_sites()),
              "process 4711 (train): 7.81 KiB live; 2 sites, one sample per 512 KiB\n"
              "    live blocks     peak allocated part of live allocated at\n"
              "5.86 KiB     60 11.7 KiB  23.4 KiB        75.0% load at train.py:12\n"
              "1.95 KiB     20 3.91 KiB  7.81 KiB        25.0% step at train.py:20\n");
}

TEST(ProfileTable, ShowsTheChosenValueAndTheRowsThatAreLeftOut) {
    const std::string text =
        text_of(testing::two_sites(), {.max_rows = 1, .sizes = Sizes::bytes}, Value::peak);
    EXPECT_TRUE(has(text, "part of peak")) << text;
    EXPECT_TRUE(has(text, "6000     60 12000")) << text;
    EXPECT_TRUE(text.ends_with("load at train.py:12\n1 more line (--top)\n")) << text;
}

TEST(ProfileTable, SumsTheSitesOfALineUpUnlessItShowsStacks) {
    MadeProfile made;
    const auto load = made.python("load", 12);
    made.site({load, made.python("train", 7)}, 2000);
    made.site({made.python("step", 20)}, 3000);
    made.site({load, made.python("test", 9)}, 2000).lifetimes[0] = 5;
    const std::string lines = text_of(made.profile());
    EXPECT_TRUE(has(lines, "3 sites")) << lines;
    EXPECT_TRUE(has(lines,
                    "allocated at\n"
                    "3.91 KiB     40 7.81 KiB  15.6 KiB        57.1% load at train.py:12\n"
                    "2.93 KiB     30 5.86 KiB  11.7 KiB        42.9% step at train.py:20\n"))
        << lines;
    EXPECT_TRUE(has(text_of(made.profile(), {.max_rows = 1, .stacks = true}), "2 more sites"));
}

TEST(ProfileTable, PrintsStacksWithTheInnermostCallFirst) {
    const std::string text = text_of(testing::two_sites(), {.stacks = true});
    EXPECT_TRUE(has(text,
                    "load at train.py:12\n"
                    "    lib.so+0x10\n"
                    "    load at train.py:12\n"
                    "    <module> at train.py:3\n"
                    "1.95 KiB"))
        << text;
}

TEST(ProfileTable, ReportsThePeakAndLostSamples) {
    HeapProfile profile = testing::two_sites();
    profile.peak_bytes = 3 << 20;
    profile.peak_unix_ns = 1'700'000'000'000'000'000;
    profile.lost_samples = 12;
    const std::string text = text_of(profile);
    EXPECT_TRUE(has(text, "7.81 KiB live, peak 3.00 MiB at 2023-11-1")) << text;
    EXPECT_TRUE(has(text, "12 samples could not be taken, because there was no room\n")) << text;
}

TEST(ProfileTable, ReportsThatSamplingIsOff) {
    HeapProfile profile = testing::two_sites();
    profile.interval = 0;
    const std::string text = text_of(profile);
    EXPECT_TRUE(has(text,
                    "2 sites\nsampling is off; turn it on with tensorpool profile --interval "
                    "512KiB, or TENSORPOOL_PROFILE=512KiB"))
        << text;
}

TEST(ProfileTable, StatesTheDistanceThatWasUsed) {
    HeapProfile profile = testing::two_sites();
    profile.mean_distance = (512 << 10) + 10;
    EXPECT_TRUE(has(text_of(profile), "2 sites, one sample per 512 KiB\n")) << text_of(profile);
    profile.mean_distance = 35 << 20;
    EXPECT_TRUE(has(text_of(profile), "2 sites, one sample per 35.0 MiB (512 KiB requested)\n"))
        << text_of(profile);
}

TEST(ProfileTable, ReportsThatThereAreNoSites) {
    EXPECT_EQ(text_of(MadeProfile().profile()),
              "process 4711 (train): no allocation has been sampled yet, one sample per 512 KiB\n");
}

TEST(ProfileTable, MakesNamesSafeForATerminal) {
    MadeProfile made;
    made.profile().process_name = "a\x1b[2J";
    made.site({made.frame("python:f\x1b[31m\n@x.py", 1)}, 100);
    made.site({made.frame("python:" + std::string(5000, 'x') + "@x.py", 1)}, 50);
    const std::string text = text_of(made.profile(), {.stacks = true});
    EXPECT_FALSE(has(text, "\x1b")) << text;
    EXPECT_TRUE(has(text, "process 4711 (a?[2J)")) << text;
    EXPECT_TRUE(has(text, "100.0% f?[31m? at x.py:1\n") || has(text, " f?[31m? at x.py:1\n"))
        << text;
    EXPECT_TRUE(has(text, "xxxxx\n")) << text;
}

TEST(LifetimesTable, ShowsFreedBlocksInTheColumnsThatHaveAny) {
    HeapProfile profile = testing::two_sites();
    profile.sites[1].lifetimes[0] = 5;
    profile.sites[1].lifetimes[15] = 7;
    profile.sites[0].lifetimes[5] = 20'000;
    const std::string text = text_of(profile, {.lifetimes = true});
    EXPECT_TRUE(
        text.ends_with("\n"
                       "freed <1us  <1ms longer allocated at\n"
                       "   12    5     0      7 load at train.py:12\n"
                       "20.0k    0 20.0k      0 step at train.py:20\n"))
        << text;
}

}  // namespace
}  // namespace tensorpool::command::profile
