#pragma once

#include <poll.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <limits>
#include <thread>

#include "support/wait_until.hpp"

namespace tensorpool::testing {

/// Stops a thread within a call after a number of its instructions: with the processor's trap flag
/// set, each instruction raises a signal. One such thread at a time; x86-64 only.
class StoppedThread {
public:
    /// Returns the number of instructions of a call. Also sets up the process for `stop`.
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

    /// Starts a thread, which calls `prepare` and then `call`, and stops it after `instructions` of
    /// them or at the end of the call. Then calls `while_stopped` and lets the thread finish.
    template <class Prepare, class Call, class WhileStopped>
    static void stop(unsigned instructions, Prepare prepare, Call call,
                     WhileStopped while_stopped) {
        may_go_on_ = is_stopped_ = false;
        std::thread thread([&] {
            prepare();
            stepped(instructions, call);
        });
        wait_until("the thread is stopped", is_stopped_);
        while_stopped();
        may_go_on_ = true;
        thread.join();
    }

private:
    static constexpr long long trap_flag = 0x100;

    /// Makes the call and returns how many of the instructions were left.
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
