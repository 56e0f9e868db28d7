#include "serve/statistics_site.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "exchange.hpp"

namespace tensorpool::command::serve {
namespace {

using nlohmann::json;
using testing::body_of;
using testing::header_of;
using testing::MadeUpServer;
using testing::status_of;

json read(const std::string& answer) {
    return json::parse(body_of(answer), nullptr, false);
}

TEST(StatisticsSite, ListsTheProcesses) {
    MadeUpServer server;
    server.processes.add(8).problem = "it is another user's";
    server.watcher.round(testing::at_second(1));
    const std::string answer = server.get("/api/processes");
    EXPECT_EQ(status_of(answer), 200);
    EXPECT_EQ(header_of(answer, "Content-Type"), "application/json");
    EXPECT_EQ(read(answer), json::parse(R"([
        {"process":7,"name":"made-up","readable":true,"problem":"","ended":false},
        {"process":8,"name":"made-up","readable":false,"problem":"it is another user's","ended":false}
    ])"));
}

TEST(StatisticsSite, SendsOneSnapshot) {
    const json parsed = read(MadeUpServer().get("/api/snapshot?process=7"));
    EXPECT_EQ(parsed.at("time"), 1'800'000'000);
    EXPECT_EQ(parsed.at("snapshot").at("process"), 7);
    EXPECT_EQ(parsed.at("snapshot").at("pools")[0].at("in_use_bytes"), 1000);
    EXPECT_TRUE(parsed.at("rates").at("pools").empty());
}

TEST(StatisticsSite, ReportsAnUnknownProcess) {
    MadeUpServer server;
    for (const char* path : {"/api/snapshot", "/api/stream"}) {
        const std::string target = path;
        EXPECT_EQ(status_of(server.get(target)), 400);
        EXPECT_EQ(status_of(server.get(target + "?process=x")), 400);
        EXPECT_EQ(status_of(server.get(target + "?process=7x")), 400);
        EXPECT_EQ(status_of(server.get(target + "?process=-7")), 400);
        EXPECT_EQ(status_of(server.get(target + "?process=99999999999999999999")), 400);
        const std::string answer = server.get(target + "?process=8");
        EXPECT_EQ(status_of(answer), 404);
        EXPECT_NE(read(answer).at("error").get<std::string>().find("process 8"), std::string::npos);
    }
}

TEST(StatisticsSite, StreamsEvents) {
    const std::string request = "GET /api/stream?process=7 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const std::string answer = MadeUpServer().converse(request, 4096, 1);
    EXPECT_EQ(header_of(answer, "Content-Type"), "text/event-stream");
    EXPECT_EQ(header_of(answer, "Cache-Control"), "no-store");
}

TEST(StatisticsSite, SendsMetricsOfRunningProcesses) {
    MadeUpServer server;
    const std::string answer = server.get("/metrics");
    EXPECT_EQ(header_of(answer, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
    EXPECT_NE(answer.find("tensorpool_block_bytes{"), std::string::npos);
    server.processes.all[7].running = false;
    EXPECT_EQ(server.get("/metrics").find("tensorpool_block_bytes{"), std::string::npos);
    server.watcher.round(testing::at_second(1));
    EXPECT_EQ(server.get("/metrics").find("tensorpool_block_bytes{"), std::string::npos);
}

TEST(StatisticsSite, SendsThePageOrReportsThatItIsNotBuilt) {
    const std::string answer = MadeUpServer().get("/");
    EXPECT_EQ(status_of(answer), 200);
    EXPECT_TRUE(header_of(answer, "Content-Type").starts_with("text/html"));
    EXPECT_NE(answer.find("tensorpool"), std::string::npos);
}

TEST(StatisticsSite, SendsHeadsWithoutBodies) {
    MadeUpServer server;
    for (const char* target : {"/", "/metrics", "/api/processes", "/api/stream?process=7"}) {
        const std::string answer =
            server.converse("HEAD " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
        EXPECT_EQ(status_of(answer), 200) << target;
        EXPECT_EQ(body_of(answer), "") << target;
    }
}

TEST(StatisticsSite, ComparesPathsExactly) {
    MadeUpServer server;
    EXPECT_EQ(status_of(server.get("/%6detrics")), 200);
    for (const char* path : {"/metrics/", "//metrics", "/metrics%00", "/../metrics", "/api", "/%",
                             "/api/session", "/%2e%2e/etc/passwd"}) {
        EXPECT_EQ(status_of(server.get(path)), 404) << path;
    }
}

TEST(StatisticsSite, WritesValidJsonForAnyNames) {
    MadeUpServer server;
    const std::string hostile = "</script><b>\"'\\\x01\n\r\x7f\xff\xc3";
    server.processes.all[7].name = hostile;
    server.processes.all[7].snapshot.process_name = hostile;
    server.processes.all[7].snapshot.pools = {testing::made_up_pool(1, hostile)};
    server.processes.all[7].snapshot.scopes.resize(1);
    server.watcher.round(testing::at_second(1));
    const std::string clean = "</script><b>\"'\\\x01\n\r\x7f\xEF\xBF\xBD\xEF\xBF\xBD";
    EXPECT_EQ(read(server.get("/api/processes")).at(0).at("name"), clean);
    const json parsed = read(server.get("/api/snapshot?process=7")).at("snapshot");
    EXPECT_EQ(parsed.at("process_name"), clean);
    EXPECT_EQ(parsed.at("pools")[0].at("name"), clean);
}

TEST(StatisticsSite, WritesValidMetricsForAnyNames) {
    MadeUpServer server;
    server.processes.all[7].snapshot.pools = {
        testing::made_up_pool(1, "a\"} 1\ntensorpool_fake 2\n\\")};
    server.watcher.round(testing::at_second(1));
    const std::string metrics = body_of(server.get("/metrics"));
    EXPECT_EQ(metrics.find("\ntensorpool_fake"), std::string::npos);
    EXPECT_NE(metrics.find(R"(pool="a\"} 1\ntensorpool_fake 2\n\\")"), std::string::npos);
}

}  // namespace
}  // namespace tensorpool::command::serve
