#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace tensorpool::statistics {

/// Remembers which processes hold a segment whose descriptor they closed: to find that out one has
/// to look through all mappings of a process, which somebody who lists them each second should not
/// do each second. Thread-safe.
class ClosedSegments {
public:
    /// What was found out half a minute ago at most. Throws std::bad_alloc.
    bool holds(std::uint64_t process, std::uint64_t now_ns);

private:
    static constexpr std::uint64_t period_ns = 30'000'000'000;
    struct Seen {
        std::uint64_t since_ns;
        bool holds;
    };

    std::mutex mutex_;
    std::uint64_t cleared_ns_ = 0;
    std::map<std::uint64_t, Seen> seen_;
};

}  // namespace tensorpool::statistics
