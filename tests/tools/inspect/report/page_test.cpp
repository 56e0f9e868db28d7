// Opens the report in a browser: its policy allows its own script and style and nothing else.

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "inspect/analysis.hpp"
#include "tools/inspect/made_recording.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::inspect {
namespace {

/// Returns the DOM of the page and the messages of the browser.
std::string opened(const std::string& html) {
    const photos::TemporaryFolder folder;
    const std::string page = folder.file("report.html", html);
    const std::string command =
        "HOME='" + folder.path().string() +
        "' chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr --dump-dom "
        "'file://" +
        page + "' 2>&1";
    std::FILE* const pipe = popen(command.c_str(), "re");
    std::string text;
    char part[4096];
    while (const std::size_t bytes = std::fread(part, 1, sizeof part, pipe)) {
        text.append(part, bytes);
    }
    pclose(pipe);
    return text;
}

TEST(Page, RunsOnlyItsOwnScript) {
    if (!std::filesystem::exists("/usr/bin/chromium")) {
        GTEST_SKIP() << "install the Debian package chromium";
    }
    trace::testing::MadeRecording made;
    const auto pool = made.source(
        TraceSource::pool, "<script>document.title='taken'</script><img src=x onerror=alert(1)>");
    made.allocate(0x10000, 3 << 20, pool);
    made.allocate(0x800000, 1 << 20);
    const std::string html = html_report(analyse(made.recording(), 5), "a.trace", Sizes::iec, 5);
    const std::string text = opened(html);
    ASSERT_NE(text.find("</html>"), std::string::npos) << text;
    if (text.find("<p class=\"note\">Built without npm") != std::string::npos)
        GTEST_SKIP() << "install npm";
    EXPECT_NE(text.find("class=\"uplot "), std::string::npos) << "the script did not run";
    EXPECT_NE(text.find("aria-valuetext=\"1.00 us, 4.00 MiB\""), std::string::npos);
    EXPECT_NE(text.find("<title>a.trace - tensorpool inspect</title>"), std::string::npos);
    EXPECT_EQ(text.find("Refused to"), std::string::npos) << text;
    EXPECT_EQ(text.find("Uncaught"), std::string::npos) << text;
}

}  // namespace
}  // namespace tensorpool::command::inspect
