#include "serve/http/messages.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorpool::command::serve {
namespace {

Request accepted(const std::string& head) {
    return read_head(head, Limits());
}

/// Returns the status of the refusal; 0 if the head is accepted.
int status_of(const std::string& head) {
    try {
        read_head(head, Limits());
        return 0;
    } catch (const Refusal& refusal) {
        return refusal.response().status;
    }
}

std::string get(const std::string& headers) {
    return "GET / HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

std::string post(const std::string& headers) {
    return "POST /api/session HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

TEST(RequestHead, ReadsTheHeadersThatTheServerUses) {
    const Request request = accepted(
        "GET /api/stream?process=7&a=%41+b HTTP/1.1\r\nhOsT:  localhost:1 \r\nORIGIN: http://x\r\n"
        "Cookie: a=b\r\nAuthorization: Bearer t\r\nSec-Fetch-Site: none\r\n\r\n");
    EXPECT_EQ(request.method, "GET");
    EXPECT_EQ(request.path, "/api/stream");
    EXPECT_EQ(request.parameters,
              (std::map<std::string, std::string>{{"process", "7"}, {"a", "A b"}}));
    EXPECT_EQ(request.headers, (std::map<std::string, std::string>{{"host", "localhost:1"},
                                                                   {"origin", "http://x"},
                                                                   {"cookie", "a=b"},
                                                                   {"authorization", "Bearer t"},
                                                                   {"sec-fetch-site", "none"}}));
    EXPECT_TRUE(request.keeps_connection);
    EXPECT_EQ(request.body_bytes, 0u);
}

TEST(RequestHead, DropsOtherHeaders) {
    const std::string ranges = "Range: bytes=" + std::string(4000, '0') + "-\r\n";
    const Request request = accepted(
        get(ranges +
            "Accept-Encoding: br\r\nUpgrade: websocket\r\nX: \xC3\xA9\t\xFF\r\nREMOTE_ADDR: "
            "::1\r\nEmpty:\r\n"));
    EXPECT_EQ(request.headers.size(), 1u);
}

TEST(RequestHead, RejectsMalformedFirstLines) {
    for (const char* line :
         {"", "GET", "GET /", "GET  HTTP/1.1", "GET  / HTTP/1.1", "GET / HTTP/1.1 ", " / HTTP/1.1x",
          "GET /\t HTTP/1.1", "GET /a b HTTP/1.1", "GET http://localhost/ HTTP/1.1",
          "GET * HTTP/1.1", "GET /\xC3\xA9 HTTP/1.1", "GET /\x7f HTTP/1.1"}) {
        const std::string head = std::string(line) + "\r\nHost: localhost\r\n\r\n";
        const int status = status_of(head);
        EXPECT_TRUE(status == 400 || status == 505) << line << ": " << status;
    }
}

TEST(RequestHead, AcceptsThreeMethodsOfOneVersion) {
    EXPECT_EQ(status_of("HEAD / HTTP/1.0\r\nHost: a\r\n\r\n"), 0);
    EXPECT_EQ(status_of("PUT / HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
    EXPECT_EQ(status_of("get / HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
    EXPECT_EQ(status_of("OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n"), 405);
    EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
    EXPECT_EQ(status_of("GET / HTTP/0.9\r\nHost: a\r\n\r\n"), 505);
}

TEST(RequestHead, RejectsLongAddresses) {
    const Limits limits;
    const std::string rest = " HTTP/1.1\r\nHost: a\r\n\r\n";
    const std::string at_most(limits.line_bytes - std::string("GET / HTTP/1.1").size(), 'x');
    EXPECT_EQ(status_of("GET /" + at_most + rest), 0);
    EXPECT_EQ(status_of("GET /" + at_most + "x" + rest), 414);
}

TEST(RequestHead, RejectsTooManyHeaders) {
    std::string headers;
    for (std::size_t i = 1; i < Limits().headers; ++i) headers += "A: b\r\n";
    EXPECT_EQ(status_of(get(headers)), 0);
    EXPECT_EQ(status_of(get(headers + "A: b\r\n")), 431);
}

TEST(RequestHead, RejectsMalformedHeaders) {
    for (const char* header :
         {"A\r\n", ": b\r\n", "A : b\r\n", " A: b\r\n", "A: b\nC: d\r\n", "A: \x01\r\n",
          "A: b\r\n folded\r\n", "A\xC3: b\r\n", "A(): b\r\n"}) {
        EXPECT_EQ(status_of(get(header)), 400) << header;
    }
    EXPECT_EQ(status_of(get(std::string("A: \0b\r\n", 8))), 400);
    EXPECT_EQ(status_of(get("Cookie: \xC3\xA9\r\n")), 400);
}

TEST(RequestHead, RejectsAmbiguousHeaders) {
    EXPECT_EQ(status_of(get("Host: evil.example\r\n")), 400);
    EXPECT_EQ(status_of(get("origin: a\r\nOrigin: b\r\n")), 400);
    EXPECT_EQ(status_of(post("Content-Length: 1\r\nContent-Length: 1\r\n")), 400);
    EXPECT_EQ(status_of(post("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n")), 400);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
}

TEST(RequestHead, RejectsBodiesWithoutAPlainSize) {
    EXPECT_EQ(status_of(post("Transfer-Encoding: chunked\r\n")), 501);
    EXPECT_EQ(status_of(post("Content-Encoding: gzip\r\n")), 415);
    EXPECT_EQ(status_of(post("Expect: 100-continue\r\n")), 417);
}

TEST(RequestHead, ReadsTheSizeOfTheBody) {
    EXPECT_EQ(accepted(post("Content-Length: 4096\r\n")).body_bytes, 4096u);
    EXPECT_EQ(accepted(post("")).body_bytes, 0u);
    EXPECT_EQ(status_of(post("Content-Length: 4097\r\n")), 413);
    for (const char* size : {"", "99999999999999999999", "-1", "+1", "1x", "0x1", "1 1"}) {
        EXPECT_EQ(status_of(post(std::string("Content-Length: ") + size + "\r\n")), 400) << size;
    }
    EXPECT_EQ(status_of(get("Content-Length: 1\r\n")), 400);
    EXPECT_EQ(status_of(get("Content-Length: 0\r\n")), 0);
}

TEST(RequestHead, ClosesTheConnectionOnRequestOrForSafety) {
    EXPECT_FALSE(accepted(get("Connection: Close\r\n")).keeps_connection);
    EXPECT_FALSE(accepted("GET / HTTP/1.0\r\nHost: a\r\n\r\n").keeps_connection);
    EXPECT_FALSE(accepted(post("Content-Length: 3\r\n")).keeps_connection);
}

}  // namespace
}  // namespace tensorpool::command::serve
