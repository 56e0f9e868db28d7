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

/// A set of addresses, as ranges that do not touch.
class RangeSet {
public:
    /// Adds a range. Returns whether it touched one that was there.
    bool add(Range range);
    void remove(Range range);

    bool contains(std::uint64_t address) const;
    std::uint64_t bytes() const noexcept { return bytes_; }
    /// Returns the ranges, sorted by address.
    std::vector<Range> all() const;

private:
    using Ends = std::map<std::uint64_t, std::uint64_t>;  // by begin
    Ends::iterator erase(Ends::iterator at);
    void insert(Range range);

    Ends ends_;
    std::uint64_t bytes_ = 0;
};

}  // namespace tensorpool::command::trace
