#pragma once

#include <cstdlib>

#include <tensorpool/snapshot.hpp>

#include "platform/environment.hpp"

namespace tensorpool::events {

/// Returns whether TENSORPOOL_REPORT requests a report of all memory when the program ends. An
/// invalid value is reported on stderr.
inline bool report_wanted_by_environment() {
    bool wanted = false;
    static constexpr platform::Named<bool> answers[] = {{"1", true}, {"0", false}, {"", false}};
    platform::read("TENSORPOOL_REPORT", wanted, "1 or 0", "0",
                   [](std::string_view text) { return platform::parse_choice(text, answers); });
    return wanted;
}

inline void print_report() {
    const std::string report = to_text(take_snapshot());
    std::fwrite(report.data(), 1, report.size(), stderr);
}

/// Prints that report to stderr at exit if it was requested. Reads the variable once. Called by
/// each object that holds memory when it is created.
inline void report_at_exit_where_wanted() {
    // Not initialized by a static variable: the lock of that initialization would be held while
    // atexit waits for its own lock, whose holder may be in a malloc that calls this function.
    // Relaxed: the first thread registers the report.
    static constinit std::atomic<bool> looked = false;
    if (looked.exchange(true, std::memory_order_relaxed)) return;
    if (report_wanted_by_environment()) std::atexit(print_report);
}

}  // namespace tensorpool::events
