#include "serve/http/listen_address.hpp"

#include <gtest/gtest.h>

#include "common/settings.hpp"
#include "serve/http/listener.hpp"

namespace tensorpool::command::serve {
namespace {

std::string refusal(const std::string& text) {
    try {
        read_listen_address(text);
    } catch (const CommandError& error) {
        EXPECT_EQ(error.code(), wrong_usage);
        return error.what();
    }
    return "";
}

TEST(ListenAddress, IsReadFromAddressAndPort) {
    const ListenAddress four = read_listen_address("127.0.0.1:9464");
    EXPECT_EQ(four.name, "127.0.0.1");
    EXPECT_EQ(four.number, "127.0.0.1");
    EXPECT_EQ(four.port, 9464);
    const ListenAddress six = read_listen_address("[::1]:0");
    EXPECT_EQ(six.name, "::1");
    EXPECT_EQ(six.port, 0);
    EXPECT_EQ(read_listen_address("LOCALHOST:65535").name, "localhost");
}

TEST(ListenAddress, DistinguishesLoopbackAndAnyAddresses) {
    for (const char* text :
         {"127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1", "[::ffff:127.0.0.1]:1"}) {
        EXPECT_TRUE(read_listen_address(text).is_loopback()) << text;
        EXPECT_FALSE(read_listen_address(text).is_any()) << text;
    }
    for (const char* text : {"0.0.0.0:1", "[::]:1", "[::ffff:0.0.0.0]:1"}) {
        EXPECT_FALSE(read_listen_address(text).is_loopback()) << text;
        EXPECT_TRUE(read_listen_address(text).is_any()) << text;
    }
    EXPECT_FALSE(read_listen_address("128.0.0.1:1").is_loopback());
    EXPECT_FALSE(read_listen_address("[2001:db8::1]:1").is_loopback());
}

TEST(ListenAddress, ReportsErrorsAndWhatWasExpected) {
    for (const char* text :
         {"", "9464", "127.0.0.1", ":9464", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
          "127.0.0.1:x", "::1:9464", "[::1:9464", "[]:1", "no.such.name.invalid:1"}) {
        const std::string said = refusal(text);
        EXPECT_NE(said.find("expected an address and a port"), std::string::npos) << text << said;
    }
}

TEST(Listener, ReportsAPortInUse) {
    const Listener first(read_listen_address("127.0.0.1:0"));
    EXPECT_NE(first.port(), 0);
    const std::string text = "127.0.0.1:" + std::to_string(first.port());
    try {
        const Listener second(read_listen_address(text));
        FAIL() << "two listeners on one port";
    } catch (const CommandError& error) {
        EXPECT_EQ(error.code(), finding);
        const std::string said = error.what();
        EXPECT_NE(said.find("cannot listen on " + text), std::string::npos) << said;
        EXPECT_NE(said.find("choose another port with --listen"), std::string::npos) << said;
    }
}

TEST(Listener, ReportsAnAddressOfAnotherMachine) {
    try {
        const Listener listener(read_listen_address("192.0.2.1:0"));
        FAIL() << "192.0.2.1 is reserved for documentation";
    } catch (const CommandError& error) {
        EXPECT_NE(std::string(error.what()).find("this machine does not have the address"),
                  std::string::npos);
    }
}

TEST(Listener, CanReuseAPort) {
    const int port = Listener(read_listen_address("127.0.0.1:0")).port();
    EXPECT_EQ(Listener(read_listen_address("127.0.0.1:" + std::to_string(port))).port(), port);
}

}  // namespace
}  // namespace tensorpool::command::serve
