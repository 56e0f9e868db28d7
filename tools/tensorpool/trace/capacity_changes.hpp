#pragma once

#include <cstdint>
#include <vector>

#include "trace/recording.hpp"

namespace tensorpool::command::trace {

/// Collects what sources held, ring by ring, and puts it in the order of time.
class CapacityChanges {
public:
    void add(std::uint64_t time, std::uint32_t source, std::uint64_t bytes) {
        changes_.push_back({time, bytes, source});
    }
    /// A source went: it holds nothing from there on.
    void end(std::uint64_t time, std::uint32_t source) { ends_.push_back({time, 0, source}); }

    /// Times are those that were given. `sources`: how many there are.
    std::vector<CapacityChange> take(std::size_t sources);

private:
    std::vector<CapacityChange> changes_;
    std::vector<CapacityChange> ends_;
};

}  // namespace tensorpool::command::trace
