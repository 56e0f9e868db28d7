#include "serve/statistics_site.hpp"

#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

#include "exchange.hpp"
#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::serve {
namespace {

using nlohmann::json;
using testing::body_of;
using testing::header_of;
using testing::status_of;

constexpr std::uint64_t ns_per_ms = 1'000'000;

/// A server with a token whose process 7 has a heap profile.
class ProfileServer : public testing::MadeUpServer {
public:
    explicit ProfileServer(const std::string& token = testing::the_token) : MadeUpServer(token) {
        take_profile(20, 6000);
    }

    void take_profile(double second, std::uint64_t bytes) {
        HeapProfile& profile = processes.all[7].profile;
        profile = profile::testing::two_sites();
        profile.process = 7;
        profile.time_unix_ns = testing::at_second(second).unix_ns;
        profile.sites[1].live_bytes = bytes;
        watcher.round(testing::at_second(second));
    }
    std::string get(const std::string& target) {
        return MadeUpServer::get(target, "Authorization: Bearer " + testing::the_token + "\r\n");
    }
};

std::string at(const std::string& target, double second) {
    return target + std::to_string(testing::at_second(second).unix_ns / ns_per_ms);
}

TEST(ProfileAnswers, AreRefusedWithoutATokenFile) {
    ProfileServer server("");
    for (const char* path : {"/api/profile", "/api/profile/times", "/flame-graph"}) {
        const std::string answer = server.get(std::string(path) + "?process=7");
        EXPECT_EQ(status_of(answer), 403) << path;
        EXPECT_NE(answer.find("with --token-file"), std::string::npos) << path;
        EXPECT_EQ(answer.find("train.py"), std::string::npos) << path;
    }
    EXPECT_EQ(server.get("/metrics").find("tensorpool_site"), std::string::npos);
}

TEST(ProfileAnswers, NeedTheToken) {
    ProfileServer server;
    EXPECT_EQ(status_of(server.MadeUpServer::get("/api/profile?process=7")), 401);
    EXPECT_EQ(status_of(server.MadeUpServer::get("/flame-graph?process=7")), 401);
}

TEST(ProfileAnswers, ShowThePresentProfile) {
    ProfileServer server;
    const json profile = json::parse(body_of(server.get("/api/profile?process=7")));
    EXPECT_EQ(profile.at("process"), 7);
    EXPECT_EQ(profile.at("sites")[0].at("live_bytes"), 6000);
    EXPECT_EQ(profile.at("frames")[1].at("name"), "load at train.py:12");
}

TEST(ProfileAnswers, ShowTheProfilesThatAreKept) {
    ProfileServer server;
    server.take_profile(30, 9000);
    const json times = json::parse(body_of(server.get("/api/profile/times?process=7")));
    ASSERT_EQ(times.at("times_unix_ms").size(), 3U) << "the first round kept an empty one";
    const std::string last_but_one = times.at("times_unix_ms")[1].dump();
    const std::string target = "/api/profile?process=7&time=";
    const json old = json::parse(body_of(server.get(target + last_but_one)));
    EXPECT_EQ(old.at("sites")[0].at("live_bytes"), 6000);
    server.processes.end_all();
    server.watcher.round(testing::at_second(31));
    const json last = json::parse(body_of(server.get("/api/profile?process=7")));
    EXPECT_EQ(last.at("sites")[0].at("live_bytes"), 9000) << "kept after the end";
}

TEST(ProfileAnswers, AnUnknownProcessOrTimeIsReported) {
    ProfileServer server;
    EXPECT_EQ(status_of(server.get("/api/profile")), 400);
    EXPECT_EQ(status_of(server.get("/api/profile/times?process=8")), 404);
    EXPECT_EQ(status_of(server.get("/flame-graph?process=8")), 404);
    EXPECT_EQ(status_of(server.get("/api/profile/other?process=7")), 404);
}

TEST(ProfileAnswers, TheFlameGraphHasAPolicyOfItsOwn) {
    ProfileServer server;
    server.take_profile(30, 9000);
    const std::string answer = server.get(at("/flame-graph?process=7&before=", 21));
    EXPECT_EQ(status_of(answer), 200);
    const std::string policy = header_of(answer, "Content-Security-Policy");
    EXPECT_TRUE(policy.starts_with("default-src 'none'; style-src 'nonce-")) << policy;
    EXPECT_TRUE(policy.ends_with("; frame-ancestors 'self'")) << policy;
    EXPECT_EQ(answer.find("Content-Security-Policy", answer.find(policy)),
              answer.find("Content-Security-Policy", answer.find("\r\n\r\n")))
        << "one header only, and the element of the page";
    EXPECT_EQ(header_of(answer, "X-Frame-Options"), "SAMEORIGIN");
    EXPECT_NE(answer.find("\"live_bytes\":9000"), std::string::npos);
    EXPECT_NE(answer.find("\"live_bytes\":6000"), std::string::npos) << "compared with";
}

TEST(ProfileAnswers, AddMetricsOfTheLargestSites) {
    ProfileServer server;
    const std::string sample =
        R"(tensorpool_site_live_bytes{pid="7",process="train",site="load at train.py:12"} 6000)";
    EXPECT_NE(server.get("/metrics").find(sample), std::string::npos);
    server.processes.end_all();
    server.watcher.round(testing::at_second(31));
    EXPECT_EQ(server.get("/metrics").find("tensorpool_site"), std::string::npos);
}

}  // namespace
}  // namespace tensorpool::command::serve
