#include "serve/http/http_server.hpp"

#include <gtest/gtest.h>

#include "tools/serve/exchange.hpp"

namespace tensorpool::command::serve {
namespace {

using testing::header_of;
using testing::MadeUpServer;
using testing::status_of;
using testing::the_token;

int status_for(MadeUpServer& server, const std::string& host, const std::string& headers = "",
               const std::string& target = "/api/processes") {
    return status_of(server.converse("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" +
                                     headers + "\r\n"));
}

TEST(Gate, AnswersUnderLoopbackNames) {
    MadeUpServer server;
    for (const char* host : {"localhost", "localhost:9464", "LocalHost:9464", "127.0.0.1",
                             "127.0.0.1:9464", "[::1]:9464", "[::1]",
                             // An ssh tunnel has another port.
                             "localhost:8080"}) {
        EXPECT_EQ(status_for(server, host), 200) << host;
    }
}

TEST(Gate, RejectsOtherNames) {
    MadeUpServer server;
    for (const char* host :
         {"evil.example", "evil.example:9464", "localhost.evil.example", "evil-localhost",
          "127.0.0.1.evil.example:9464", "192.168.0.1:9464", "0.0.0.0:9464", "[::1", "[::1]x",
          "localhost:", "localhost:x", "localhost:9464:1", "localhost@evil.example", "::1",
          "localhost.", "[]:1"}) {
        const int status = status_for(server, host);
        const bool refused = status == 403 || std::string(host) == "localhost:";
        EXPECT_TRUE(refused) << host << ": " << status;
    }
}

TEST(Gate, RejectsEmptyHostsAndOrigins) {
    MadeUpServer server;
    EXPECT_EQ(status_for(server, ""), 400);
    EXPECT_EQ(status_for(server, "localhost", "Origin: \r\n"), 400);
}

TEST(Gate, AnswersUnderTheListenAddress) {
    MadeUpServer server(the_token, "127.0.0.2:9464");
    const std::string bearer = "Authorization: Bearer " + the_token + "\r\n";
    EXPECT_EQ(status_for(server, "127.0.0.2:9464", bearer), 200);
    EXPECT_EQ(status_for(server, "127.0.0.3:9464", bearer), 403);
}

TEST(Gate, AnswersUnderAnyNumericAddressIfListeningOnAll) {
    MadeUpServer server(the_token, "0.0.0.0:9464");
    const std::string bearer = "Authorization: Bearer " + the_token + "\r\n";
    for (const char* host : {"192.168.0.1:9464", "localhost:9464", "[fe80::1]:9464", "10.0.0.1"}) {
        EXPECT_EQ(status_for(server, host, bearer), 200) << host;
    }
    EXPECT_EQ(status_for(server, "evil.example:9464", bearer), 403);
    EXPECT_EQ(status_for(server, "1.2.3.4.5:9464", bearer), 403);
}

TEST(Gate, RejectsPagesOfOtherOrigins) {
    MadeUpServer server;
    const std::string host = "localhost:9464";
    EXPECT_EQ(status_for(server, host, "Origin: http://localhost:9464\r\n"), 200);
    EXPECT_EQ(status_for(server, host, "Origin: HTTP://LOCALHOST:9464\r\n"), 200);
    for (const char* origin :
         {"null", "http://evil.example", "http://localhost", "http://localhost:3000",
          "https://localhost:9464", "http://127.0.0.1:9464", "http://localhost:9464.evil.example",
          "http://localhost:9464/", "*"}) {
        EXPECT_EQ(status_for(server, host, "Origin: " + std::string(origin) + "\r\n"), 403)
            << origin;
    }
}

TEST(Gate, RejectsResourcesLoadedByOtherPages) {
    MadeUpServer server;
    const std::string host = "localhost:9464";
    EXPECT_EQ(status_for(server, host, "Sec-Fetch-Site: same-origin\r\n"), 200);
    EXPECT_EQ(status_for(server, host, "Sec-Fetch-Site: none\r\n"), 200);
    EXPECT_EQ(status_for(server, host, "Sec-Fetch-Site: cross-site\r\n"), 403);
    EXPECT_EQ(status_for(server, host, "Sec-Fetch-Site: same-site\r\n"), 403);
    const std::string link = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";
    EXPECT_EQ(status_for(server, host, link, "/"), 200);
    EXPECT_EQ(status_for(server, host, link, "/metrics"), 403);
    EXPECT_EQ(
        status_for(server, host, "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", "/"),
        403);
}

TEST(Gate, RejectsRequestsWithoutTheToken) {
    MadeUpServer server(the_token);
    const std::string host = "localhost:9464";
    for (const char* target : {"/", "/metrics", "/api/processes", "/api/snapshot?process=7",
                               "/api/stream?process=7", "/nothing"}) {
        EXPECT_EQ(status_for(server, host, "", target), 401) << target;
    }
    EXPECT_EQ(status_of(server.post("/nothing", "")), 401);
}

TEST(Gate, AcceptsTheTokenAsBearer) {
    MadeUpServer server(the_token);
    const std::string host = "localhost:9464";
    const auto with = [&](const std::string& value) {
        return status_for(server, host, "Authorization: " + value + "\r\n");
    };
    EXPECT_EQ(with("Bearer " + the_token), 200);
    EXPECT_EQ(with("bearer   " + the_token), 200);
    for (const std::string& wrong :
         {"Bearer " + the_token + "x", "Bearer " + the_token.substr(1),
          "Bearer " + the_token.substr(0, 5), std::string("Bearer "), std::string("Bearer"),
          "Basic " + the_token, the_token, "Bearer" + the_token,
          "Bearer " + the_token + " " + the_token}) {
        EXPECT_EQ(with(wrong), 401) << wrong;
    }
}

TEST(Gate, SetsACookieForTheToken) {
    MadeUpServer server(the_token);
    const std::string answer = server.post("/api/session", "token=" + the_token);
    EXPECT_EQ(status_of(answer), 204);
    const std::string cookie = header_of(answer, "Set-Cookie");
    EXPECT_NE(cookie.find("; HttpOnly; SameSite=Strict; Path=/"), std::string::npos);
    EXPECT_EQ(cookie.find(the_token), std::string::npos);

    const std::string pair = cookie.substr(0, cookie.find(';'));
    const std::string host = "localhost:9464";
    EXPECT_EQ(status_for(server, host, "Cookie: " + pair + "\r\n"), 200);
    EXPECT_EQ(status_for(server, host, "Cookie: other=1; " + pair + "; more=2\r\n", "/"), 200);
    EXPECT_EQ(status_for(server, host, "Cookie: x" + pair + "\r\n"), 401);
    EXPECT_EQ(status_for(server, host, "Cookie: " + pair + "x\r\n"), 401);
    EXPECT_EQ(status_for(server, host, "Cookie: " + pair.substr(0, pair.size() - 1) + "\r\n"), 401);
    EXPECT_EQ(status_for(server, host, "Cookie: tensorpool_9464=" + the_token + "\r\n"), 401);
    MadeUpServer other(the_token);
    EXPECT_EQ(status_for(other, host, "Cookie: " + pair + "\r\n"), 401) << "of another server";
}

TEST(Gate, SetsNoCookieOtherwise) {
    MadeUpServer server(the_token);
    for (const std::string& body : {"token=" + the_token + "x", std::string("token="),
                                    std::string(), "x=" + the_token, "token=&token=" + the_token}) {
        const std::string answer = server.post("/api/session", body);
        EXPECT_EQ(status_of(answer), 401) << body;
        EXPECT_EQ(header_of(answer, "Set-Cookie"), "") << body;
    }
    EXPECT_EQ(status_of(server.post("/api/session", "token=" + the_token, "")), 415);
    EXPECT_EQ(status_of(server.post("/api/session", "token=" + the_token,
                                    "Content-Type: application/x-www-form-urlencoded\r\n"
                                    "Origin: http://evil.example\r\n")),
              403);
}

TEST(Gate, NeedsNoTokenIfThereIsNone) {
    MadeUpServer server;
    EXPECT_EQ(status_for(server, "localhost", "Authorization: Bearer anything\r\n"), 200);
    const std::string answer = server.post("/api/session", "token=anything");
    EXPECT_EQ(status_of(answer), 204);
    EXPECT_EQ(header_of(answer, "Set-Cookie"), "");
}

TEST(Token, SecretsDiffer) {
    EXPECT_EQ(random_secret().size(), 64u);
    EXPECT_NE(random_secret(), random_secret());
}

TEST(Token, IsEqualOnlyToItself) {
    EXPECT_TRUE(equals_secret("abc", "abc"));
    for (const char* wrong : {"", "ab", "abd", "abcabc", "abca", "ABC"}) {
        EXPECT_FALSE(equals_secret(wrong, "abc")) << wrong;
    }
    EXPECT_FALSE(equals_secret("", ""));
    EXPECT_FALSE(equals_secret("x", ""));
}

}  // namespace
}  // namespace tensorpool::command::serve
