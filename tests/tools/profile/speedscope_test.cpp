#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/profile/formats.hpp"
#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::profile {
namespace {

using Json = nlohmann::json;

TEST(Speedscope, HasASampleForEachSite) {
    const Json json =
        Json::parse(to_speedscope(name_frames(testing::two_sites(), Value::allocated)));
    EXPECT_EQ(json["$schema"], "https://www.speedscope.app/file-format-schema.json");
    EXPECT_EQ(json["shared"]["frames"][1],
              Json({{"name", "load at train.py:12"}, {"file", "/home/me/train.py"}, {"line", 12}}));
    const Json& profile = json["profiles"][0];
    EXPECT_EQ(profile["type"], "sampled");
    EXPECT_EQ(profile["unit"], "bytes");
    EXPECT_EQ(profile["samples"], Json::array({{3, 1, 0}, {3, 2}}));
    EXPECT_EQ(profile["weights"], Json::array({24000, 8000}));
    EXPECT_EQ(profile["endValue"], 32000);
}

TEST(Speedscope, NamesSitesWithoutAStack) {
    testing::MadeProfile made;
    made.site({}, 100);
    const Json json = Json::parse(to_speedscope(name_frames(made.profile(), Value::live)));
    EXPECT_EQ(json["shared"]["frames"][0]["name"], "[other stacks]");
    EXPECT_EQ(json["profiles"][0]["samples"], Json::array({Json::array({0})}));
}

}  // namespace
}  // namespace tensorpool::command::profile
