#pragma once

#include <cstdint>
#include <map>
#include <vector>


namespace tensorpool::command::trace {

/// The addresses [begin, end).
struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t bytes() const noexcept { return end - begin; }
};

/// Returns the range of `bytes` bytes from `address` on, cut at the end of the address space.
inline Range range_of(std::uint64_t address, std::uint64_t bytes) noexcept {
    const std::uint64_t max_bytes = UINT64_MAX - address;
    return {address, address + (bytes < max_bytes ? bytes : max_bytes)};
}

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

}  // namespace tensorpool::command::trace
