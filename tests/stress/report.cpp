#include "stress/report.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>

namespace tensorpool::stress {
namespace {

// Relaxed: set before a second thread exists.
std::atomic<bool> planted = false;

}  // namespace

// A pool that detects the fault itself aborts with its own message.
void expect_planted_fault(std::string_view name) {
    planted.store(!name.empty(), std::memory_order_relaxed);
    if (name.empty()) return;
    std::signal(SIGABRT, [](int) {
        constexpr std::string_view text =
            "pool_stress: the planted fault is found: the pool stopped the program\n";
        _exit(write(STDOUT_FILENO, text.data(), text.size()) < 0 ? 1 : 0);
    });
}

void found(const char* format, ...) {
    char text[256];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const bool expected = planted.load(std::memory_order_relaxed);
    std::printf("pool_stress: %s: %s\n", expected ? "the planted fault is found" : "FAULT", text);
    std::fflush(stdout);
    _exit(expected ? 0 : 1);
}

}  // namespace tensorpool::stress
