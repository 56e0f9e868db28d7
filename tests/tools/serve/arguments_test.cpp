#include "serve/http/http_server.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "common/settings.hpp"
#include "tools/temporary_folder.hpp"

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
        EXPECT_TRUE(read_listen_address(text).is_loopback) << text;
        EXPECT_FALSE(read_listen_address(text).is_any) << text;
    }
    for (const char* text : {"0.0.0.0:1", "[::]:1", "[::ffff:0.0.0.0]:1"}) {
        EXPECT_FALSE(read_listen_address(text).is_loopback) << text;
        EXPECT_TRUE(read_listen_address(text).is_any) << text;
    }
    EXPECT_FALSE(read_listen_address("128.0.0.1:1").is_loopback);
    EXPECT_FALSE(read_listen_address("[2001:db8::1]:1").is_loopback);
}

TEST(ListenAddress, ReportsErrorsAndWhatWasExpected) {
    for (const char* text :
         {"", "9464", "127.0.0.1", ":9464", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1",
          "127.0.0.1:x", "::1:9464", "[::1:9464", "[]:1", "no.such.name.invalid:1"}) {
        const std::string said = refusal(text);
        EXPECT_NE(said.find("expected an address and a port"), std::string::npos) << text << said;
    }
}

using photos::TemporaryFolder;

class TokenFile : public ::testing::Test {
protected:
    std::string read(const std::string& content, mode_t mode = 0600) {
        std::filesystem::remove(path);
        std::ofstream(path) << content;
        chmod(path.c_str(), mode);
        return read_token_file(path);
    }
    /// Returns the error message; "" if there is none.
    std::string refusal(const std::string& content, mode_t mode = 0600) {
        try {
            read(content, mode);
        } catch (const CommandError& error) {
            EXPECT_EQ(error.code(), wrong_usage);
            return error.what();
        }
        return "";
    }

    TemporaryFolder folder;
    std::filesystem::path path = folder.path() / "token";
};

TEST_F(TokenFile, ContainsTheTokenInOneLine) {
    EXPECT_EQ(read("0123456789abcdef"), "0123456789abcdef");
    EXPECT_EQ(read("0123456789abcdef\n"), "0123456789abcdef");
    EXPECT_EQ(read("0123456789abcdef \r\n\n", 0640), "0123456789abcdef");
}

TEST_F(TokenFile, IsRejectedWithAShortToken) {
    EXPECT_NE(refusal("0123456789abcde\n").find("has 15 characters; expected 16 or more"),
              std::string::npos);
    EXPECT_NE(refusal("").find("has 0 characters"), std::string::npos);
}

TEST_F(TokenFile, IsRejectedWithMoreThanAWord) {
    EXPECT_NE(refusal("0123456789abcdef 0123456789abcdef"), "");
    EXPECT_NE(refusal("0123456789abcdef\n0123456789abcdef"), "");
    EXPECT_NE(refusal("0123456789abcd\xC3\xA9"), "");
    EXPECT_NE(refusal(std::string("0123456789abcdef\0x", 18)), "");
    EXPECT_NE(refusal(std::string(4097, 'x')).find("larger than 4096 bytes"), std::string::npos);
}

TEST_F(TokenFile, IsRejectedIfOtherUsersMayReadOrChangeIt) {
    for (const mode_t mode : {0644, 0604, 0602, 0620, 0666, 0777}) {
        const std::string said = refusal("0123456789abcdef", mode);
        char digits[8];
        std::snprintf(digits, sizeof digits, "%04o", static_cast<unsigned>(mode));
        EXPECT_NE(said.find("its mode is " + std::string(digits)), std::string::npos) << said;
        EXPECT_NE(said.find("expected 0600: chmod 600 "), std::string::npos) << said;
    }
}

TEST_F(TokenFile, IsRejectedIfItIsNotARegularFile) {
    EXPECT_THROW(read_token_file(folder.path() / "missing"), CommandError);
    EXPECT_THROW(read_token_file(folder.path()), CommandError);
    EXPECT_THROW(read_token_file("/dev/null"), CommandError);
    const std::filesystem::path pipe = folder.path() / "pipe";
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_THROW(read_token_file(pipe), CommandError) << "must not wait for a writer";
}

}  // namespace
}  // namespace tensorpool::command::serve
