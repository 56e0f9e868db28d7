#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <string>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool::testing {

enum class Sized : bool { no, yes };

inline void free_block(MemoryPool& pool, void* p, std::size_t bytes, Sized sized) {
    if (sized == Sized::yes) {
        pool.deallocate(p, bytes);
    } else {
        pool.deallocate(p);
    }
}

inline std::string text_of(const void* p) {
    char text[32];
    std::snprintf(text, sizeof text, "%p", p);
    return text;
}

/// Matches all of stderr: one report whose first line names the pool and the pointer, and whose
/// words name them too, then `found`, and end with `expected`. The stack of the call may follow.
inline ::testing::PolymorphicMatcher<::testing::internal::MatchesRegexMatcher> one_report(
    const std::string& pool, const void* p, const std::string& found,
    const std::string& expected = "expected a block of this pool in use") {
    return ::testing::MatchesRegex("tensorpool: fatal: [a-z-]+ ptr=" + text_of(p) +
                                   " size=[0-9-]+ requested=[0-9-]+ pool=" + pool +
                                   " thread=[0-9]+\n  pool '" + pool + "': [a-z]+: [^\n]*" +
                                   text_of(p) + "[^\n]*" + found + "[^\n]*" + expected +
                                   "\n(  found by thread [0-9]+:\n)?(    [^\n]+\n)*");
}

inline ::testing::KilledBySignal by_abort() {
    return ::testing::KilledBySignal(SIGABRT);
}

}  // namespace tensorpool::testing
