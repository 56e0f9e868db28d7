#pragma once

/// @file
/// The highest that this reader saw: the segment is never written for it.

#include <cstdint>
#include <map>
#include <string>

namespace tensorpool::command {

class Highest {
public:
    /// Returns the highest since the last reset, the present one included.
    std::uint64_t see(const std::string& key, std::uint64_t value);
    /// What was seen last under this key is the highest again.
    void reset();
    std::uint64_t get(const std::string& key) const;

private:
    struct Seen {
        std::uint64_t last = 0;
        std::uint64_t highest = 0;
    };
    std::map<std::string, Seen> seen_;
};

}  // namespace tensorpool::command
