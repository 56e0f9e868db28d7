#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdlib.h>

#include <string>
#include <utility>
#include <vector>

namespace tensorpool::testing {

/// The result of a program: its exit code, or -1 if a signal ended it, and its output.
struct ProgramResult {
    int exit_code = -1;
    std::string output;
    std::string errors;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

inline std::string content_of(int file) {
    std::string content(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
    const ssize_t length = pread(file, content.data(), content.size(), 0);
    content.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
    close(file);
    return content;
}

/// Runs a program with these variables added to the environment, and waits for it to end.
inline ProgramResult run_program(const std::string& path, std::vector<std::string> arguments,
                                 const Variables& variables = {}) {
    std::vector<char*> argv = {const_cast<char*>(path.c_str())};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const int output = memfd_create("output", 0);
    const int errors = memfd_create("errors", 0);
    const pid_t child = fork();
    if (child == 0) {
        for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
        dup2(output, STDOUT_FILENO);
        dup2(errors, STDERR_FILENO);
        execv(path.c_str(), argv.data());
        _exit(127);
    }
    ProgramResult result;
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)) {
        result.exit_code = WEXITSTATUS(status);
    }
    result.output = content_of(output);
    result.errors = content_of(errors);
    return result;
}

}  // namespace tensorpool::testing
