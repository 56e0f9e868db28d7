#pragma once

#include <poll.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <limits>
#include <thread>

namespace tensorpool::testing {

/// Stops a thread within a call, after so many of its instructions: the processor's trap flag
/// raises a signal after each. One such thread at a time; x86-64.
class StoppedThread {
public:
    /// How many instructions a thread makes for a call. Also sets the process up for the others.
    template <class Call>
    static unsigned instructions_of(Call call) {
        struct sigaction action {};
        action.sa_sigaction = after_an_instruction;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGTRAP, &action, nullptr);
        constexpr unsigned most = std::numeric_limits<unsigned>::max();
        unsigned made = 0;
        may_go_on_ = true;
        std::thread([&] { made = most - stepped(most, call); }).join();
        return made;
    }

    /// Makes a call, or all of it if it takes fewer instructions, on a thread that `prepare` was
    /// called on; when it stands, calls `meanwhile`; then lets it come to its end.
    template <class Prepare, class Call, class Meanwhile>
    static void stop(unsigned instructions, Prepare prepare, Call call, Meanwhile meanwhile) {
        may_go_on_ = is_stopped_ = false;
        std::thread thread([&] {
            prepare();
            stepped(instructions, call);
        });
        while (!is_stopped_) std::this_thread::yield();
        meanwhile();
        may_go_on_ = true;
        thread.join();
    }

private:
    static constexpr long long trap_flag = 0x100;

    /// Returns how many of the instructions are left.
    template <class Call>
    static unsigned stepped(unsigned instructions, Call& call) {
        instructions_left_ = instructions;
        raise(SIGTRAP);
        call();
        const unsigned left = instructions_left_;
        if (left != 0) instructions_left_ = 1;
        return left;
    }

    static void after_an_instruction(int, siginfo_t*, void* context) {
        auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
        flags |= trap_flag;
        if (--instructions_left_ != 0) return;
        flags &= ~trap_flag;
        is_stopped_ = true;
        while (!may_go_on_) poll(nullptr, 0, 1);
    }

    static inline std::atomic<unsigned> instructions_left_ = 0;
    static inline std::atomic<bool> is_stopped_ = false;
    static inline std::atomic<bool> may_go_on_ = false;
};

}  // namespace tensorpool::testing
