#pragma once

#include <cstdint>
#include <unordered_map>

namespace tensorpool::command::inspect {

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

/// Counts the pages that contain a part of any block, which a pool cannot release. Inner pages of a
/// block belong to that block only, so just the pages at its two ends are kept by number.
class PagesInUse {
public:
    explicit PagesInUse(std::uint64_t page_bytes) noexcept : page_bytes_(page_bytes) {}

    void add(Range range) { change(range, true); }
    /// Removes a range. Requires: it was added.
    void remove(Range range) { change(range, false); }
    std::uint64_t bytes() const noexcept { return (inner_ + shared_.size()) * page_bytes_; }

private:
    void change(Range range, bool added);
    void change_page(std::uint64_t page, bool added);

    std::uint64_t page_bytes_;
    std::uint64_t inner_ = 0;                                  // number of inner pages
    std::unordered_map<std::uint64_t, std::uint32_t> shared_;  // blocks that begin or end in a page
};

}  // namespace tensorpool::command::inspect
