/// @file
/// Tests signals and job control: the program behaves as if it ran alone.

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tools/run/ran_program.hpp"
#include "tools/tensorpool/terminal_session.hpp"

namespace tensorpool::command::run {
namespace {

namespace fs = std::filesystem;

/// Runs the subject by `tensorpool run` in a process group of its own, as a shell does.
class Job {
public:
    explicit Job(std::vector<std::string> orders, const char* terminal = nullptr) {
        std::vector<std::string> words = {TENSORPOOL_PROGRAM, "run",  "--with", "none",
                                          "--report",         "none", "--",     TENSORPOOL_SUBJECT};
        words.insert(words.end(), orders.begin(), orders.end());
        std::vector<char*> pointers;
        for (std::string& word : words) pointers.push_back(word.data());
        pointers.push_back(nullptr);
        int input[2];
        int output[2];
        if (::pipe2(input, O_CLOEXEC) != 0 || ::pipe2(output, O_CLOEXEC) != 0) std::abort();
        process_ = ::fork();
        if (process_ == 0) {
            // The terminal opened by the first process of a session becomes its controlling
            // terminal.
            if (terminal == nullptr) ::setpgid(0, 0);
            if (terminal != nullptr && (::setsid() < 0 || ::open(terminal, O_RDWR) < 0)) {
                ::_exit(126);
            }
            ::dup2(input[0], STDIN_FILENO);
            ::dup2(output[1], STDOUT_FILENO);
            ::execv(pointers[0], pointers.data());
            ::_exit(127);
        }
        ::close(input[0]);
        ::close(output[1]);
        input_ = input[1];
        output_ = ::fdopen(output[0], "r");
    }
    ~Job() {
        ::kill(-process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
        ::close(input_);
        ::fclose(output_);
    }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    pid_t process() const { return process_; }
    void send(int signal) const { ::kill(process_, signal); }
    void send_all(int signal) const { ::kill(-process_, signal); }
    /// Lets the program continue with its next argument.
    void go_on() const { ASSERT_EQ(::write(input_, "\n", 1), 1); }
    /// Whether output arrives within a short time.
    bool has_line() const {
        pollfd output{::fileno(output_), POLLIN, 0};
        return ::poll(&output, 1, 20'000) > 0;
    }
    std::string line() const {
        char text[100] = {};
        return ::fgets(text, sizeof text, output_) != nullptr ? text : "";
    }
    /// Waits until the command stops or ends.
    int change() const {
        int status = 0;
        ::waitpid(process_, &status, WUNTRACED);
        return status;
    }

private:
    pid_t process_ = -1;
    int input_ = -1;
    FILE* output_ = nullptr;
};

/// The only child of a process.
pid_t child_of(pid_t process) {
    const std::string number = std::to_string(process);
    std::ifstream file("/proc/" + number + "/task/" + number + "/children");
    pid_t child = -1;
    file >> child;
    return child;
}

TEST(Signals, ThoseOfOtherProcessesReachTheProgram) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGUSR1, SIGUSR2, SIGWINCH,
                             SIGALRM, SIGCONT}) {
        const Job job({"tell", std::to_string(signal), "say", "ready", "read", "exit", "6"});
        EXPECT_EQ(job.line(), "ready\n");
        job.send(signal);
        const std::string number = std::to_string(signal);
        EXPECT_EQ(job.line(), "signal " + std::string(2 - number.size(), '0') + number + "\n");
        job.go_on();
        const int status = job.change();
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 6) << status;
    }
}

TEST(Signals, ASignalThatEndsTheProgramEndsBoth) {
    const Job job({"say", "ready", "read"});
    EXPECT_EQ(job.line(), "ready\n");
    job.send(SIGTERM);
    const int status = job.change();
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST(Signals, AnIgnoredSignalEndsNothing) {
    const Job job(
        {"ignore", std::to_string(SIGTERM), "say", "ready", "read", "say", "on", "exit", "0"});
    EXPECT_EQ(job.line(), "ready\n");
    job.send(SIGTERM);
    job.go_on();
    EXPECT_EQ(job.line(), "on\n");
    EXPECT_EQ(job.change(), 0);
}

TEST(Signals, TheProgramIsInTheSameProcessGroup) {
    const Job job({"group"});
    EXPECT_EQ(job.line(), std::to_string(job.process()) + "\n");
}

TEST(Signals, StopsAndContinuesWithTheProgram) {
    const Job job({"say", "ready", "read", "say", "on", "exit", "8"});
    EXPECT_EQ(job.line(), "ready\n");
    for (int times = 0; times < 2; ++times) {
        job.send(SIGTSTP);  // to tensorpool alone
        const int status = job.change();
        ASSERT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP) << status;
        // First as a shell's `fg` does, then to tensorpool alone.
        times == 0 ? job.send_all(SIGCONT) : job.send(SIGCONT);
    }
    job.go_on();
    EXPECT_EQ(job.line(), "on\n");
    const int status = job.change();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 8) << status;
}

TEST(Signals, TheProgramCanBeStoppedAndContinuedAlone) {
    const Job job({"say", "ready", "read", "exit", "8"});
    EXPECT_EQ(job.line(), "ready\n");
    const pid_t program = child_of(job.process());
    ::kill(program, SIGSTOP);
    ::kill(program, SIGCONT);
    job.go_on();
    const int status = job.change();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 8) << status;
}

TEST(Signals, HangupIsPassedToTheProgramOfASession) {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_TRUE(terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0);
    const Job job({"tell", "1", "say", "ready", "read", "exit", "6"}, ::ptsname(terminal));
    EXPECT_EQ(job.line(), "ready\n");
    ::close(terminal);
    EXPECT_TRUE(job.has_line());
    job.go_on();
    EXPECT_EQ(job.line(), "signal 01\n");
    const int status = job.change();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 6) << status;
}

TEST(Signals, AnAlarmSetBeforeIsPassedToTheProgram) {
    const pid_t job = ::fork();
    if (job == 0) {
        ::alarm(1);
        ::execl(TENSORPOOL_PROGRAM, TENSORPOOL_PROGRAM, "run", "--with", "none", "--report", "none",
                "--", "/bin/sleep", "20", nullptr);
        ::_exit(127);
    }
    int status = 0;
    ::waitpid(job, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) << status;
}

/// Runs in a shell with job control.
class InATerminal : public ::testing::Test {
protected:
    void SetUp() override {
        if (!TerminalSession::is_possible()) GTEST_SKIP() << "needs tmux";
    }
};

TEST_F(InATerminal, ControlCReachesTheProgramOnce) {
    TerminalSession terminal(std::string(TENSORPOOL_PROGRAM) +
                             " run --with none --report none -- " + TENSORPOOL_SUBJECT +
                             " tell 2 say ready read say went exit 7");
    ASSERT_TRUE(terminal.comes_to_show("ready"));
    terminal.press("C-c");
    ASSERT_TRUE(terminal.comes_to_show("signal 02"));
    terminal.press("Enter");
    ASSERT_TRUE(terminal.comes_to_show("status 7"));
    const std::string screen = terminal.screen();
    EXPECT_EQ(screen.find("signal 02"), screen.rfind("signal 02")) << screen;
}

TEST_F(InATerminal, ControlZStopsTheJobAndTheShellContinues) {
    TerminalSession terminal("PS1='$ ' bash --norc --noprofile -i");
    terminal.press(std::string(TENSORPOOL_PROGRAM) + " run --with none --report none -- " +
                   TENSORPOOL_SUBJECT + " say ready read say went exit 7");
    terminal.press("Enter");
    ASSERT_TRUE(terminal.comes_to_show("\nready"));
    terminal.press("C-z");
    ASSERT_TRUE(terminal.comes_to_show("Stopped"));
    terminal.press("echo shell is here");
    terminal.press("Enter");
    ASSERT_TRUE(terminal.comes_to_show("\nshell is here"));
    terminal.press("fg; echo code $?");
    terminal.press("Enter");
    terminal.press("Enter");
    ASSERT_TRUE(terminal.comes_to_show("\nwent"));
    ASSERT_TRUE(terminal.comes_to_show("\ncode 7"));
}

}  // namespace
}  // namespace tensorpool::command::run
