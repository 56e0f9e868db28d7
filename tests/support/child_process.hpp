#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace tensorpool::testing {

/// Runs `function` in a child process and returns its exit code, or -1 if a signal ended it.
template <class Function>
int exit_code_of_child(Function&& function) {
    const pid_t child = fork();
    if (child == 0) _exit(function());
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Returns whether `function` returns true in a child process, whose state it may change freely.
template <class Function>
bool holds_in_child(Function&& function) {
    return exit_code_of_child([&] { return function() ? 0 : 1; }) == 0;
}

}  // namespace tensorpool::testing
