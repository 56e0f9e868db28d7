#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <type_traits>

namespace perf {

/// Calls `measure()` in a child process, made by `fork`, and returns its result. Returns nullopt if
/// the child process failed. Then `status`, if given, has how it ended, as waitpid(2) says it.
template <class Measure, class Result = std::invoke_result_t<Measure>>
std::optional<Result> in_a_child(Measure measure, int* status = nullptr) {
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
    int ended = 0;
    if (child > 0) waitpid(child, &ended, 0);
    if (status != nullptr) *status = ended;
    return complete && ended == 0 ? std::optional(result) : std::nullopt;
}

}  // namespace perf
