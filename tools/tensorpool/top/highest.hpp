#pragma once

/// @file
/// The highest values that this reader has seen. They are kept here, because readers never write to
/// the segment.

#include <cstdint>
#include <map>
#include <string>

namespace tensorpool::command {

class Highest {
public:
    /// Records a value. Returns the highest since the last reset, including this one.
    std::uint64_t record(const std::string& key, std::uint64_t value);
    /// Makes the last value of each key its highest.
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
