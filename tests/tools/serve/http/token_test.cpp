#include "serve/http/token.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "common/settings.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::serve {
namespace {

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
