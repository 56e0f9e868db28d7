#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "support/wait_until.hpp"

namespace tensorpool::testing {

/// Returns what the system says about a thread of this process: the number of the system call that
/// it waits in, and more. Empty if the system does not say it.
inline std::string system_call_of(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/syscall");
    std::string line;
    std::getline(file, line);
    return line;
}

/// Returns whether the system reports what threads wait for.
inline bool can_see_waits() {
    return !system_call_of(gettid()).empty();
}

/// Returns whether a call on another thread waits until `lock` is unlocked. If it does not wait, it
/// has ended before this returns; no clock is involved. REQUIRES: `can_see_waits()`.
template <class Lock, class Call>
bool waits_for(Lock& lock, Call call) {
    const std::string waiting = std::to_string(SYS_futex) + ' ';
    std::atomic<pid_t> thread = 0;
    std::atomic<bool> may_begin = false;
    std::atomic<bool> has_ended = false;
    std::thread other([&] {
        thread = gettid();
        wait_until("the lock is taken", may_begin);
        call();
        has_ended = true;
    });
    wait_until("the other thread has started", [&] { return thread != 0; });
    lock.lock();
    may_begin = true;
    wait_until("the call waits or has ended",
               [&] { return has_ended || system_call_of(thread).starts_with(waiting); });
    const bool waited = !has_ended;
    lock.unlock();
    other.join();
    return waited;
}

}  // namespace tensorpool::testing
