#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <type_traits>

namespace perf {

/// Calls `measure()` in a child process, made by `fork`, and returns its result. Returns nullopt if
/// the child process failed.
template <class Measure, class Result = std::invoke_result_t<Measure>>
std::optional<Result> in_a_child(Measure measure) {
    static_assert(std::is_trivially_copyable_v<Result>, "the result goes through a pipe");
    int ends[2];
    if (pipe(ends) != 0) return std::nullopt;
    const pid_t child = fork();
    if (child == 0) {
        const Result result = measure();
        const bool written = write(ends[1], &result, sizeof(result)) == sizeof(result);
        _exit(written ? 0 : 1);
    }
    close(ends[1]);
    Result result;
    const bool complete = child > 0 && read(ends[0], &result, sizeof(result)) == sizeof(result);
    close(ends[0]);
    int status = 0;
    if (child > 0) waitpid(child, &status, 0);
    return complete && status == 0 ? std::optional(result) : std::nullopt;
}

}  // namespace perf
