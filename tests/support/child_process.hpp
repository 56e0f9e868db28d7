#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace tensorpool::testing {

/// What a child process came to: its exit code, or -1 where a signal ended it.
template <class Function>
int exit_code_of_child(Function&& function) {
    const pid_t child = fork();
    if (child == 0) _exit(function());
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Whether `function` holds in a child process, where it may do what it likes to the process.
template <class Function>
bool holds_in_child(Function&& function) {
    return exit_code_of_child([&] { return function() ? 0 : 1; }) == 0;
}

}  // namespace tensorpool::testing
