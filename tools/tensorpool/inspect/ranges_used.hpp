#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "inspect/pages_in_use.hpp"

namespace tensorpool::command::inspect {

/// The addresses that any block had so far: what a pool holds that never releases memory.
class RangesUsed {
public:
    void add(Range range);
    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Returns the disjoint ranges, sorted by address.
    std::vector<Range> all() const;

private:
    std::map<std::uint64_t, std::uint64_t> ends_;  // by begin
    std::uint64_t bytes_ = 0;
};

}  // namespace tensorpool::command::inspect
