#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/timeline.hpp>

#include "statistics/segment/segment.hpp"
#include "support/bounded_wait.hpp"

/// A process that tests read: this test program, started again, which executes commands of one
/// letter each. Each test file that uses it calls `act_as_target_if_requested` before main.
namespace tensorpool::testing {

inline constexpr const char* target_variable = "TENSORPOOL_TEST_TARGET";
inline constexpr uid_t nobody = 65534;

class Target {
public:
    void run() {
        answer(true);  // the process has started
        for (char letter; ::read(STDIN_FILENO, &letter, 1) == 1;) {
            answer(execute(letter));
        }
        ::_exit(0);
    }

private:
    static constexpr std::size_t block_bytes = 1000;

    static void answer(bool done) {
        if (::write(STDOUT_FILENO, done ? "." : "!", 1) != 1) ::_exit(1);
    }

    bool execute(char letter) {
        switch (letter) {
            case 'p':  // creates a pool and allocates blocks
                pool_.emplace(PoolOptions{.name = "photos"});
                for (int i = 0; i < 100; ++i) blocks_.push_back(pool_->allocate(block_bytes));
                return true;
            case 'f':  // frees the blocks
                for (void* const block : blocks_) pool_->deallocate(block, block_bytes);
                blocks_.clear();
                return true;
            case 't':  // starts a named thread that uses the pool
                std::thread([this] {
                    pthread_setname_np(pthread_self(), "worker");
                    pool_->deallocate(pool_->allocate(64), 64);
                    worked_ = true;
                    for (;;) ::pause();
                }).detach();
                return yield_until([this] { return worked_.load(); });
            case 'm':  // writes an entry to the timeline
                mark_timeline("hello", 5);
                return true;
            case 'c':  // closes all unknown descriptors
                for (int i = 3; i < 2000; ++i) ::close(i);
                return true;
            case 'v':  // changes the version of the segment
                statistics::segment().header()->version.store(statistics::segment_version + 1);
                return true;
            case 'b':  // simulates a segment that is being initialized: its magic comes last
                statistics::segment().header()->magic.store(0);
                return true;
            case 'o':  // overwrites the segment
                statistics::segment().header()->magic.store(0x6f6f6f);
                return true;
            case 'd':
                return ::prctl(PR_SET_DUMPABLE, 0) == 0;
            case 'k':  // keeps its capabilities at the next letter
                return ::prctl(PR_SET_KEEPCAPS, 1) == 0;
            case 'u':
                return ::setresgid(nobody, nobody, nobody) == 0 &&
                       ::setresuid(nobody, nobody, nobody) == 0 && ::prctl(PR_SET_DUMPABLE, 1) == 0;
            case 'n':
                return ::unshare(CLONE_NEWUSER) == 0;
            case 'x':  // runs another program; does not answer
                ::fcntl(STDOUT_FILENO, F_SETFD, FD_CLOEXEC);
                ::execl("/bin/sleep", "sleep", "1000", nullptr);
                return false;
            default:
                return false;
        }
    }

    std::optional<MemoryPool> pool_;
    std::vector<void*> blocks_;
    std::atomic<bool> worked_ = false;
};

inline bool act_as_target_if_requested() {
    if (std::getenv(target_variable) != nullptr) Target().run();
    return false;
}

/// Starts a target process and ends it in the destructor.
class TargetProcess {
public:
    /// `variables` are set in its environment, as "NAME=value".
    explicit TargetProcess(const std::string& letters,
                           const std::vector<std::string>& variables = {}) {
        int orders[2];
        int answers[2];
        if (::pipe2(orders, O_CLOEXEC) != 0 || ::pipe2(answers, O_CLOEXEC) != 0) std::abort();
        process_ = ::fork();
        if (process_ == 0) become_target(orders[0], answers[1], variables);
        ::close(orders[0]);
        ::close(answers[1]);
        orders_ = orders[1];
        answers_ = answers[0];
        is_ready_ = receive_answer() && send(letters);
    }
    ~TargetProcess() {
        end();
        ::close(orders_);
        ::close(answers_);
    }
    TargetProcess(const TargetProcess&) = delete;
    TargetProcess& operator=(const TargetProcess&) = delete;

    std::uint64_t number() const { return static_cast<std::uint64_t>(process_); }
    /// Returns whether it could execute all initial commands.
    bool is_ready() const { return is_ready_; }

    /// Waits until each command is done. Returns false if one failed or the process ended.
    bool send(const std::string& letters) {
        for (const char letter : letters) {
            char answer = 0;
            if (::write(orders_, &letter, 1) != 1 || ::read(answers_, &answer, 1) != 1)
                return false;
            if (answer != '.') return false;
        }
        return true;
    }
    void kill() { ::kill(process_, SIGKILL); }
    /// Ends the process and waits for it.
    void end() {
        if (ended_) return;
        kill();
        ::waitpid(process_, nullptr, 0);
        ended_ = true;
    }
    /// Waits until the process has ended, without reaping it.
    void wait_until_zombie() {
        siginfo_t info;
        ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOWAIT);
    }

private:
    bool receive_answer() {
        char answer = 0;
        return ::read(answers_, &answer, 1) == 1 && answer == '.';
    }

    [[noreturn]] static void become_target(int orders, int answers,
                                           const std::vector<std::string>& variables) {
        ::dup2(orders, STDIN_FILENO);
        ::dup2(answers, STDOUT_FILENO);
        ::setenv(target_variable, "1", 1);
        for (std::string variable : variables) {
            const std::size_t equals = variable.find('=');
            ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
        }
        ::execl("/proc/self/exe", "target", nullptr);
        ::_exit(1);
    }

    pid_t process_ = -1;
    int orders_ = -1;
    int answers_ = -1;
    bool is_ready_ = false;
    bool ended_ = false;
};

}  // namespace tensorpool::testing
