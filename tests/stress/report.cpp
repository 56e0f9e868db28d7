#include "stress/report.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace tensorpool::stress {
namespace {

// Relaxed: set before there is a second thread.
std::atomic<bool> planted = false;

}  // namespace

void expect_planted_fault(std::string_view name) {
    planted.store(!name.empty(), std::memory_order_relaxed);
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
