#include <gtest/gtest.h>

#include "common/html.hpp"
#include "common/units.hpp"

namespace tensorpool::command::inspect {
namespace {

TEST(FormatNs, HasAUnitAndThreeDigits) {
    EXPECT_EQ(format_ns(0), "0");
    EXPECT_EQ(format_ns(999), "999 ns");
    EXPECT_EQ(format_ns(1000), "1.00 us");
    EXPECT_EQ(format_ns(45'600'000), "45.6 ms");
    EXPECT_EQ(format_ns(999'900'000), "1.00 s");
    EXPECT_EQ(format_ns(119'000'000'000), "119 s");
    EXPECT_EQ(format_ns(720'000'000'000), "12 min");
}

TEST(EscapeHtml, EscapesMarkupAndControlCharacters) {
    EXPECT_EQ(escape_html("<b a='1' c=\"2\">&"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
    EXPECT_EQ(escape_html(std::string("a\n\0b", 4)),
              "a\xEF\xBF\xBD\xEF\xBF\xBD"
              "b");
    EXPECT_EQ(escape_html("caf\xC3\xA9"), "caf\xC3\xA9");
    EXPECT_EQ(escape_html("\xff"), "\xEF\xBF\xBD");
}

}  // namespace
}  // namespace tensorpool::command::inspect
