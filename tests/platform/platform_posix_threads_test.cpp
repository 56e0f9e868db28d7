// Tests of threads and processes of platform_posix.cpp, and of writing to stderr.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "platform/platform.hpp"
#include "support/child_process.hpp"
#include "support/file_tree.hpp"

namespace tensorpool::platform {
namespace {

using testing::holds_in_child;

// Thread exit ------------------------------------------------------------------------------------

/// What happened while a thread ended, one letter for each event. One thread at a time writes the
/// text, and it is read after that thread was joined.
std::string& events() {
    static std::string text;
    return text;
}

/// The handlers of all tests in this file. A process cannot remove handlers.
ExitHandler first = no_exit_handler;
ExitHandler second = no_exit_handler;

/// How many more times the first handler requests another call.
int repetitions = 0;
std::thread::id latest_caller;

void on_thread_exit() {
    events() += 'h';
    latest_caller = std::this_thread::get_id();
    if (repetitions == 0) return;
    --repetitions;
    EXPECT_TRUE(call_at_thread_exit(first));
}

class ThreadExitTest : public ::testing::Test {
protected:
    ThreadExitTest() {
        if (first == no_exit_handler) first = add_thread_exit_handler(on_thread_exit);
        if (second == no_exit_handler) second = add_thread_exit_handler([] { events() += 's'; });
        EXPECT_GE(first, 0);
        EXPECT_GE(second, 0);
        EXPECT_NE(first, second);
        events().clear();
        repetitions = 0;
    }

    template <class Function>
    static std::string events_of_thread(Function function) {
        std::thread(function).join();
        return events();
    }
};

TEST_F(ThreadExitTest, RequestedHandlerIsCalledOnce) {
    EXPECT_EQ(events_of_thread([] { EXPECT_TRUE(call_at_thread_exit(first)); }), "h");
}

TEST_F(ThreadExitTest, TwoRequestsGiveOneCall) {
    EXPECT_EQ(events_of_thread([] {
                  EXPECT_TRUE(call_at_thread_exit(first));
                  EXPECT_TRUE(call_at_thread_exit(first));
              }),
              "h");
}

TEST_F(ThreadExitTest, HandlerIsNotCalledWithoutRequest) {
    EXPECT_EQ(events_of_thread([] {}), "");
}

TEST_F(ThreadExitTest, RequestFromHandlerRepeatsCall) {
    repetitions = 2;
    EXPECT_EQ(events_of_thread([] { EXPECT_TRUE(call_at_thread_exit(first)); }), "hhh");
}

struct AtDestruction {
    void touch() const {}
    ~AtDestruction() {
        events() += 'd';
        if (!requests_handler) return;
        EXPECT_TRUE(call_at_thread_exit(first));
    }
    bool requests_handler = false;
};
thread_local AtDestruction at_destruction;

TEST_F(ThreadExitTest, HandlerRunsAfterThreadLocalDestructors) {
    EXPECT_EQ(events_of_thread([] {
                  EXPECT_TRUE(call_at_thread_exit(first));
                  at_destruction.touch();
              }),
              "dh");
}

TEST_F(ThreadExitTest, ThreadLocalDestructorMayRequestHandler) {
    EXPECT_EQ(events_of_thread([] { at_destruction.requests_handler = true; }), "dh");
}

TEST_F(ThreadExitTest, HandlerRunsOnEndingThread) {
    std::thread::id ended;
    events_of_thread([&] {
        ended = std::this_thread::get_id();
        EXPECT_TRUE(call_at_thread_exit(first));
    });
    EXPECT_EQ(latest_caller, ended);
}

TEST_F(ThreadExitTest, BothRequestedHandlersAreCalled) {
    std::string called = events_of_thread([] {
        EXPECT_TRUE(call_at_thread_exit(second));
        EXPECT_TRUE(call_at_thread_exit(first));
    });
    std::ranges::sort(called);
    EXPECT_EQ(called, "hs") << "in either order";
}

TEST_F(ThreadExitTest, OnlyRequestedHandlerIsCalled) {
    EXPECT_EQ(events_of_thread([] { EXPECT_TRUE(call_at_thread_exit(second)); }), "s");
}

TEST_F(ThreadExitTest, RepeatedHandlerDoesNotRepeatTheOther) {
    repetitions = 2;
    std::string called = events_of_thread([] {
        EXPECT_TRUE(call_at_thread_exit(first));
        EXPECT_TRUE(call_at_thread_exit(second));
    });
    std::ranges::sort(called);
    EXPECT_EQ(called, "hhhs");
}

TEST_F(ThreadExitTest, UnknownHandlerIsRejected) {
    EXPECT_EQ(events_of_thread([] {
                  EXPECT_FALSE(call_at_thread_exit(no_exit_handler));
                  EXPECT_FALSE(call_at_thread_exit(max_exit_handlers));
              }),
              "");
}

// Runs in a child process because handlers stay. The library's own functions may have been added
// before: a program that links all of it adds them when it starts.
TEST_F(ThreadExitTest, TooManyHandlersAreRejectedAndOthersWork) {
    EXPECT_TRUE(holds_in_child([] {
        std::vector<ExitHandler> added = {second, first};
        for (;;) {
            const ExitHandler next = add_thread_exit_handler([] { events() += 'n'; });
            if (next == no_exit_handler) break;
            if (std::ranges::count(added, next) != 0 || next >= max_exit_handlers) return false;
            added.push_back(next);
        }
        if (added.size() > max_exit_handlers) return false;
        for (const ExitHandler handler : added) {
            std::thread([handler] { EXPECT_TRUE(call_at_thread_exit(handler)); }).join();
        }
        return events() == "sh" + std::string(added.size() - 2, 'n');
    }));
}

TEST_F(ThreadExitTest, ConcurrentAddsGetDifferentHandlers) {
    EXPECT_TRUE(holds_in_child([] {
        std::array<ExitHandler, max_exit_handlers> added{};
        std::vector<std::thread> threads;
        for (ExitHandler& mine : added) {
            threads.emplace_back([&mine] { mine = add_thread_exit_handler([] {}); });
        }
        for (std::thread& thread : threads) thread.join();
        std::ranges::sort(added);
        const auto [equal, rest] = std::ranges::unique(
            added.begin() + std::ranges::count(added, no_exit_handler), added.end());
        return added.front() == no_exit_handler && added.back() < max_exit_handlers &&
               equal == rest;
    }));
}

// Standard error ---------------------------------------------------------------------------------

TEST(WriteToStderr, WritesAll) {
    const testing::FileTree files;
    files.write("/stderr", "");
    const std::string text = std::string(1 << 20, 'x') + "end\n";
    EXPECT_TRUE(holds_in_child([&] {
        if (dup2(open(files.path("/stderr").c_str(), O_WRONLY), STDERR_FILENO) < 0) return false;
        write_to_stderr(text.data(), text.size());
        return true;
    }));
    EXPECT_EQ(files.read("/stderr"), text);
}

std::string read_to_end(int file) {
    std::string text;
    char part[4096];
    for (ssize_t got; (got = read(file, part, sizeof part)) > 0;) {
        text.append(part, static_cast<std::size_t>(got));
    }
    return text;
}

TEST(WriteToStderr, WritesAllToNonBlockingPipe) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ASSERT_EQ(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    std::string text;
    for (int number = 0; number < 100'000; ++number) text += std::to_string(number) + '\n';
    std::string received;
    std::thread reader([&] { received = read_to_end(ends[0]); });
    EXPECT_TRUE(holds_in_child([&] {
        if (dup2(ends[1], STDERR_FILENO) < 0) return false;
        write_to_stderr(text.data(), text.size());
        return true;
    }));
    close(ends[1]);
    reader.join();
    close(ends[0]);
    EXPECT_TRUE(received == text);  // Not EXPECT_EQ, which would compare line by line for minutes.
}

TEST(WriteToStderr, ClosedStreamIsIgnored) {
    EXPECT_TRUE(holds_in_child([] {
        close(STDERR_FILENO);
        errno = 12345;
        write_to_stderr("text", 4);
        return errno == 12345;
    }));
}

}  // namespace
}  // namespace tensorpool::platform
