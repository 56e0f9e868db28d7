/// @file
/// Tests `tensorpool top` in a real terminal, with a real process.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "common/printable.hpp"
#include "tools/tensorpool/holder_process.hpp"
#include "tools/tensorpool/terminal_session.hpp"

namespace tensorpool::command {
namespace {

namespace fs = std::filesystem;

class TopLive : public ::testing::Test {
protected:
    TopLive() : folder_(fs::temp_directory_path() / name_) {
        fs::create_directory(folder_);
        fs::create_symlink(TENSORPOOL_HOLDER, folder_ / name_);
    }
    ~TopLive() override { fs::remove_all(folder_); }
    // The programs that the tests start take samples.
    static void SetUpTestSuite() { ::setenv("TENSORPOOL_PROFILE", "on", 1); }
    static void TearDownTestSuite() { ::unsetenv("TENSORPOOL_PROFILE"); }
    void SetUp() override {
        if (!TerminalSession::is_possible()) GTEST_SKIP() << "needs tmux: install the package tmux";
    }

    static std::string top(const std::string& options) {
        return std::string(TENSORPOOL_PROGRAM) + " top -i 0.1 " + options;
    }
    std::string path() const { return folder_ / name_; }

    // Longer than the kernel keeps.
    std::string name_ = "seen" + std::to_string(getpid()) + "_photographs";
    std::string kept_ = name_.substr(0, 15);
    fs::path folder_;
};

std::size_t widest(const std::string& screen) {
    std::istringstream lines(screen);
    std::size_t columns = 0;
    for (std::string line; std::getline(lines, line);) columns = std::max(columns, line.size());
    return columns;
}

TEST_F(TopLive, ShowsEachViewOnAScreenOf80By24) {
    HolderProcess holder(path());
    holder.order("plan");
    TerminalSession terminal(top("--name " + name_));
    EXPECT_TRUE(terminal.comes_to_show(kept_ + " (" + holder.number() + ")")) << terminal.screen();
    EXPECT_TRUE(terminal.comes_to_show("second")) << terminal.screen();
    EXPECT_LE(widest(terminal.screen()), 80u);
    for (const auto& [key, shown] :
         std::vector<std::pair<const char*, const char*>>{{"b", "64.0 KiB"},
                                                          {"c", "Its call stack, innermost"},
                                                          {"s", "forward"},
                                                          {"t", "PARKED"},
                                                          {"a", "phases"},
                                                          {"l", "serving"},
                                                          {"e", "growth"},
                                                          {"o", "RESIDENT"},
                                                          {"h", "Keys of tensorpool top"}}) {
        if (*key == 'o') terminal.resize(160, 24);
        terminal.press(key);
        EXPECT_TRUE(terminal.comes_to_show(shown)) << terminal.screen();
    }
    terminal.press("q");
    EXPECT_TRUE(terminal.comes_to_show("status 0")) << terminal.screen();
}

TEST_F(TopLive, ShowsMoreWhenTheTerminalGrowsAndLessWhenItShrinks) {
    const HolderProcess holder(path());
    TerminalSession terminal(top("--pid " + holder.number()));
    EXPECT_TRUE(terminal.comes_to_show("HIGHEST")) << terminal.screen();
    EXPECT_EQ(terminal.screen().find("THREADS "), std::string::npos);
    terminal.resize(140, 40);
    EXPECT_TRUE(terminal.comes_to_show(" CACHED THREADS")) << terminal.screen();
    terminal.resize(40, 10);
    EXPECT_TRUE(terminal.comes_to_show("second")) << terminal.screen();
    EXPECT_LE(widest(terminal.screen()), 40u) << terminal.screen();
}

TEST_F(TopLive, ValuesChangeAndTheHighestIsResetOnRequest) {
    HolderProcess holder(path());
    TerminalSession terminal(top("--name " + name_));
    EXPECT_TRUE(terminal.comes_to_show("highest 8.9")) << terminal.screen();
    holder.order("hold");  // 10,000 blocks of 1 KiB
    EXPECT_TRUE(terminal.comes_to_show("in use 18.7 MiB  highest 18.7")) << terminal.screen();
    holder.order("drop");
    EXPECT_TRUE(terminal.comes_to_show("in use 8.0")) << terminal.screen();
    EXPECT_TRUE(terminal.comes_to_show("highest 18.7")) << terminal.screen();
    terminal.press("r");
    EXPECT_TRUE(terminal.comes_to_show("highest 8.0")) << terminal.screen();
}

TEST_F(TopLive, ReportsTheEndOfTheProcessAndContinues) {
    HolderProcess holder(path());
    TerminalSession terminal(top("--pid " + holder.number()));
    EXPECT_TRUE(terminal.comes_to_show("second")) << terminal.screen();
    holder.kill();
    EXPECT_TRUE(terminal.comes_to_show("has ended: these are its last statistics"))
        << terminal.screen();
    EXPECT_NE(terminal.screen().find("second"), std::string::npos) << terminal.screen();
    terminal.press("q");
    EXPECT_TRUE(terminal.comes_to_show("status 3")) << terminal.screen();
}

TEST_F(TopLive, FollowsANameFromOneProcessToTheNext) {
    TerminalSession terminal(top("--name " + name_));
    EXPECT_TRUE(terminal.comes_to_show("Waiting for a process named " + name_))
        << terminal.screen();
    for (int round = 0; round < 2; ++round) {
        HolderProcess holder(path());
        EXPECT_TRUE(terminal.comes_to_show(holder.number() + "), tensorpool")) << terminal.screen();
        holder.kill();
        EXPECT_TRUE(terminal.comes_to_show("has ended: these are its last statistics. Waiting"))
            << terminal.screen();
    }
}

TEST_F(TopLive, ASignalRestoresTheTerminal) {
    const HolderProcess holder(path());
    TerminalSession terminal(top("--pid " + holder.number()));
    EXPECT_TRUE(terminal.comes_to_show("second")) << terminal.screen();
    terminal.press("C-c");
    EXPECT_TRUE(terminal.comes_to_show("status 0")) << terminal.screen();
}

TEST_F(TopLive, AnUnknownTerminalIsReported) {
    TerminalSession terminal("TERM=nonsense " + top(""));
    EXPECT_TRUE(terminal.comes_to_show("status 2")) << terminal.screen();
    EXPECT_NE(terminal.screen().find("set TERM"), std::string::npos) << terminal.screen();
}

}  // namespace
}  // namespace tensorpool::command
