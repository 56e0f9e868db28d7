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

/// Matches all of stderr: one line that names the pool and the pointer, then `found`, and ends with
/// `expected`.
inline ::testing::PolymorphicMatcher<::testing::internal::MatchesRegexMatcher> one_line(
    const std::string& pool, const void* p, const std::string& found,
    const std::string& expected = "expected a block of this pool in use") {
    return ::testing::MatchesRegex("tensorpool: pool '" + pool + "': [a-z]+: [^\n]*" + text_of(p) +
                                   "[^\n]*" + found + "[^\n]*" + expected + "\n");
}

inline ::testing::KilledBySignal by_abort() {
    return ::testing::KilledBySignal(SIGABRT);
}

}  // namespace tensorpool::testing
