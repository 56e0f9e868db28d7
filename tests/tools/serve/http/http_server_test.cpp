#include "serve/http/http_server.hpp"

#include <gtest/gtest.h>

#include "common/settings.hpp"
#include "tools/serve/exchange.hpp"

namespace tensorpool::command::serve {
namespace {

using testing::answers_in;
using testing::body_of;
using testing::header_of;
using testing::MadeUpServer;
using testing::status_of;

TEST(HttpServer, AnswersRequestsOfOneConnectionInOrder) {
    const std::string one = "GET /api/processes HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const std::string last =
        "GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for (const std::size_t part : {std::size_t(1), std::size_t(7), std::size_t(4096)}) {
        const std::string got = MadeUpServer().converse(one + one + last + one, part);
        EXPECT_EQ(answers_in(got), 3u) << part;
        EXPECT_NE(got.rfind("HTTP/1.1 404"), std::string::npos) << part;
    }
}

TEST(HttpServer, SendsNothingToASilentClient) {
    EXPECT_EQ(MadeUpServer().converse(""), "");
}

TEST(HttpServer, RejectsIncompleteRequests) {
    EXPECT_EQ(status_of(MadeUpServer().converse("GET / HT")), 408);
    EXPECT_EQ(status_of(MadeUpServer().converse("GET / HTTP/1.1\r\nHost: localhost\r\n")), 408);
}

TEST(HttpServer, RejectsEndlessHeads) {
    const std::string endless = "GET / HTTP/1.1\r\nX: " + std::string(1 << 20, 'x');
    for (const std::size_t part : {std::size_t(100), std::size_t(1 << 20)}) {
        EXPECT_EQ(status_of(MadeUpServer().converse(endless, part)), 431);
    }
    const std::string long_one =
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(Limits().head_bytes, 'x') +
        "\r\n\r\n";
    EXPECT_EQ(status_of(MadeUpServer().converse(long_one)), 431);
}

TEST(HttpServer, AcceptsHeadsUpToTheLimit) {
    std::string head = "GET /api/processes HTTP/1.1\r\nHost: localhost\r\nX: ";
    head += std::string(Limits().head_bytes - head.size() - 4, 'x') + "\r\n\r\n";
    EXPECT_EQ(status_of(MadeUpServer().converse(head)), 200);
}

TEST(HttpServer, ClosesTheConnectionAfterABody) {
    const std::string inner = "GET /api/processes HTTP/1.1\r\nHost: localhost\r\n\r\n";
    EXPECT_EQ(answers_in(MadeUpServer().post("/nothing", inner)), 1u);
    EXPECT_EQ(answers_in(MadeUpServer().post("/api/session", "token=x\r\n\r\n" + inner)), 1u);
}

TEST(HttpServer, ReadsABodyThatArrivesInParts) {
    MadeUpServer server(testing::the_token);
    const std::string request =
        "POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 25\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken=" +
        testing::the_token;
    EXPECT_EQ(status_of(server.converse(request, 1)), 204);
    EXPECT_EQ(status_of(server.converse(request.substr(0, request.size() - 1), 1)), 408);
}

TEST(HttpServer, AddsTheProtectingHeadersToEveryAnswer) {
    MadeUpServer server(testing::the_token);
    for (const std::string& answer :
         {server.get("/"), server.get("/metrics"), server.get("/nothing"),
          server.converse("x\r\n\r\n"), server.get("/", "Origin: http://evil.example\r\n"),
          server.post("/api/session", "")}) {
        EXPECT_NE(header_of(answer, "Content-Security-Policy").find("default-src 'self'"),
                  std::string::npos);
        EXPECT_NE(header_of(answer, "Content-Security-Policy").find("frame-ancestors 'none'"),
                  std::string::npos);
        EXPECT_EQ(header_of(answer, "X-Content-Type-Options"), "nosniff");
        EXPECT_EQ(header_of(answer, "Referrer-Policy"), "no-referrer");
        EXPECT_EQ(answer.find("Access-Control"), std::string::npos);
    }
}

TEST(HttpServer, ReportsRefusalsAsJson) {
    const std::string answer = MadeUpServer().converse("PUT / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(status_of(answer), 405);
    EXPECT_EQ(body_of(answer), R"({"error":"this server supports GET, HEAD and POST only"})");
}

TEST(HttpServer, ReportsAPortInUse) {
    const HttpServer first(read_listen_address("127.0.0.1:0"), nullptr);
    EXPECT_NE(first.port(), 0);
    const std::string text = "127.0.0.1:" + std::to_string(first.port());
    try {
        const HttpServer second(read_listen_address(text), nullptr);
        FAIL() << "two listeners on one port";
    } catch (const CommandError& error) {
        EXPECT_EQ(error.code(), finding);
        const std::string said = error.what();
        EXPECT_NE(said.find("cannot listen on " + text), std::string::npos) << said;
        EXPECT_NE(said.find("choose another port with --listen"), std::string::npos) << said;
    }
}

TEST(HttpServer, ReportsAnAddressOfAnotherMachine) {
    try {
        const HttpServer server(read_listen_address("192.0.2.1:0"), nullptr);
        FAIL() << "192.0.2.1 is reserved for documentation";
    } catch (const CommandError& error) {
        EXPECT_NE(std::string(error.what()).find("this machine does not have the address"),
                  std::string::npos);
    }
}

TEST(HttpServer, CanReuseAPort) {
    const int port = HttpServer(read_listen_address("127.0.0.1:0"), nullptr).port();
    EXPECT_EQ(HttpServer(read_listen_address("127.0.0.1:" + std::to_string(port)), nullptr).port(),
              port);
}

}  // namespace
}  // namespace tensorpool::command::serve
