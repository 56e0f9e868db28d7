#include "statistics/segment/segment_layout.hpp"

#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <string_view>

namespace tensorpool::statistics {
namespace {

std::string loaded(const Name& name) {
    char text[Name::bytes];
    load_name(name, text);
    return text;
}

std::string stored(std::string_view name) {
    Name words;
    store_name(words, name);
    return loaded(words);
}

TEST(Names, AreTruncatedBeforePartialCharacter) {
    EXPECT_EQ(stored(""), "");
    EXPECT_EQ(stored("weights"), "weights");
    const std::string a(100, 'a');
    EXPECT_EQ(stored(a.substr(0, 47)), a.substr(0, 47));
    EXPECT_EQ(stored(a), a.substr(0, 47));
    EXPECT_EQ(stored(a.substr(0, 46) + "\xC3\xA4"), a.substr(0, 46));
    EXPECT_EQ(stored(a.substr(0, 45) + "\xC3\xA4"), a.substr(0, 45) + "\xC3\xA4");
    EXPECT_EQ(stored(a.substr(0, 44) + "\xF0\x9F\x98\x80"), a.substr(0, 44));
    EXPECT_EQ(stored(std::string(100, '\x80')), "") << "not a single valid character";
}

TEST(Names, OverwriteLongerNames) {
    Name name;
    store_name(name, std::string(47, 'x'));
    store_name(name, "short");
    for (std::size_t i = 1; i < std::size(name.words); ++i) EXPECT_EQ(name.words[i], 0U);
}

TEST(Names, AreTerminatedInOverwrittenRecord) {
    Name name;
    for (Counter& word : name.words) word = 0x6161616161616161;
    EXPECT_EQ(loaded(name), std::string(Name::bytes - 1, 'a'));
}

}  // namespace
}  // namespace tensorpool::statistics
