#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/profile/formats.hpp"
#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::profile {
namespace {

using testing::MadeProfile;
using Json = nlohmann::ordered_json;

/// Returns the data in a page.
Json data_of(const std::string& page) {
    const std::string begin = "<script id=\"data\" type=\"application/json\">";
    const std::size_t at = page.find(begin) + begin.size();
    return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST(FlameGraph, ContainsTheProfile) {
    const NamedProfile named = name_frames(testing::two_sites(), Value::peak);
    const std::string page = to_flame_graph(named, nullptr).text;
    EXPECT_EQ(data_of(page),
              Json({{"now", to_json(named)}, {"before", nullptr}, {"value", "peak"}}));
    EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(FlameGraph, ContainsTheProfileToCompareWith) {
    const NamedProfile named = name_frames(testing::two_sites(), Value::live);
    EXPECT_EQ(data_of(to_flame_graph(named, to_json(named)).text)["before"], to_json(named));
}

TEST(FlameGraph, UsesNoNetworkAndRunsOnlyItsOwnScript) {
    const auto [page, policy] =
        to_flame_graph(name_frames(testing::two_sites(), Value::live), nullptr);
    EXPECT_TRUE(policy.starts_with("default-src 'none'; style-src 'nonce-")) << policy;
    EXPECT_NE(page.find("content=\"" + policy + "\""), std::string::npos);
    EXPECT_EQ(page.find("unsafe-inline"), std::string::npos);
    EXPECT_EQ(page.find("http:"), std::string::npos);
    EXPECT_EQ(page.find("https:"), std::string::npos);
}

TEST(FlameGraph, NamesCannotEndTheData) {
    MadeProfile made;
    const std::string evil = "</script><script>alert(1)</script><!--@data@@policy@\xff";
    made.profile().process_name = evil;
    made.site({made.frame("python:" + evil + "@x.py", 1)}, 100);
    const std::string page = to_flame_graph(name_frames(made.profile(), Value::live), nullptr).text;
    EXPECT_EQ(page.find("<script>alert"), std::string::npos);
    EXPECT_EQ(page.find("<!--"), std::string::npos);
    EXPECT_EQ(data_of(page)["now"]["frames"][0]["function"],
              "</script><script>alert(1)</script><!--@data@@policy@\xEF\xBF\xBD");
}

}  // namespace
}  // namespace tensorpool::command::profile
