#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tensorpool::testing {

/// Runs `function` in a child process that the system makes without calling any handler of a fork,
/// as sandboxes do. Returns whether it returned true.
template <class Function>
bool holds_in_bare_child(Function&& function) {
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) _exit(function() ? 0 : 1);
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

}  // namespace tensorpool::testing
