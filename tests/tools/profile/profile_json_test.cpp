#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/settings.hpp"
#include "formats/profile/formats.hpp"
#include "tools/profile/made_profile.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::profile {
namespace {

TEST(ProfileJson, HasEverything) {
    HeapProfile profile = testing::two_sites();
    profile.lost_samples = 12;
    profile.mean_distance = 13;
    profile.sites[1].lifetimes[3] = 2.5;
    const auto json = to_json(name_frames(profile, Value::live));
    EXPECT_EQ(json["process"], 4711);
    EXPECT_EQ(json["interval"], 512 << 10);
    EXPECT_EQ(json["lost_samples"], 12);
    EXPECT_EQ(json["mean_distance"], 13);
    EXPECT_EQ(json["frames"][0]["name"], "lib.so+0x10");
    EXPECT_EQ(json["frames"][0]["module"], "/nowhere/lib.so");
    EXPECT_EQ(json["frames"][1]["function"], "load");
    EXPECT_EQ(json["frames"][1]["line"], 12);
    EXPECT_EQ(json["sites"][0]["stack"], nlohmann::json({3, 1, 0}));
    EXPECT_EQ(json["sites"][0]["peak_bytes"], 12000);
    EXPECT_EQ(json["sites"][0]["live_blocks"], 60);
    EXPECT_EQ(json["sites"][0]["lifetimes"][3], 2.5);
    ASSERT_EQ(json["problems"].size(), 1U);
}

TEST(ProfileJson, AcceptsAnyBytesAndAnyNumbers) {
    testing::MadeProfile made;
    made.profile().process_name = "\xff";
    made.site({made.frame("python:\xff@\x80", 1)}, 1).live_blocks = std::nan("");
    const std::string text = to_json(name_frames(made.profile(), Value::live)).dump();
    EXPECT_NE(text.find("\"live_blocks\":null"), std::string::npos) << text;
}

TEST(ProfileJson, IsReadBack) {
    const auto json = to_json(name_frames(testing::two_sites(), Value::live));
    const photos::TemporaryFolder folder;
    EXPECT_EQ(read_json(folder.file("a.json", json.dump())), json);
}

TEST(ProfileJson, OtherFilesAreRejected) {
    const photos::TemporaryFolder folder;
    for (const char* const text :
         {"", "{", "[]", "{\"frames\":[]}", "{\"frames\":[],\"sites\":1}"}) {
        EXPECT_THROW(read_json(folder.file("a.json", text)), CommandError) << text;
    }
    EXPECT_THROW(read_json("/nowhere/a.json"), CommandError);
    EXPECT_THROW(read_json(folder.path()), CommandError);
}

}  // namespace
}  // namespace tensorpool::command::profile
