#pragma once

/// @file
/// The highest values that this reader has seen. They are kept here, because readers never write to
/// the segment.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace tensorpool::command {

class Highest {
public:
    void record(const std::string& key, std::uint64_t value) {
        Seen& seen = seen_[key];
        seen.last = value;
        seen.highest = std::max(seen.highest, value);
    }
    /// Makes the last value of each key its highest.
    void reset() {
        for (auto& [key, seen] : seen_) seen.highest = seen.last;
    }
    /// Returns the highest value since the last reset.
    std::uint64_t get(const std::string& key) const {
        const auto found = seen_.find(key);
        return found == seen_.end() ? 0 : found->second.highest;
    }

private:
    struct Seen {
        std::uint64_t last = 0;
        std::uint64_t highest = 0;
    };
    std::map<std::string, Seen> seen_;
};

}  // namespace tensorpool::command
