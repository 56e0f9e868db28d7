#include <sys/resource.h>

#include "run/report.hpp"

namespace tensorpool::command::run {
namespace {

double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

Outcome outcome_of(int code, int signal) {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return {.code = code,
            .signal = signal,
            .user_seconds = seconds_of(usage.ru_utime),
            .system_seconds = seconds_of(usage.ru_stime),
            .minor_faults = static_cast<std::uint64_t>(usage.ru_minflt),
            .peak_resident_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
}

}  // namespace tensorpool::command::run
