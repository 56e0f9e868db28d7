#pragma once

#include <cstdint>
#include <unordered_map>

namespace tensorpool::command::inspect {

/// Addresses from `begin` up to, but without, `end`.
struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t bytes() const noexcept { return end - begin; }
};

/// `bytes` from `address` on, cut where addresses end.
inline Range range_of(std::uint64_t address, std::uint64_t bytes) noexcept {
    const std::uint64_t most = UINT64_MAX - address;
    return {address, address + (bytes < most ? bytes : most)};
}

/// How many pages hold a part of any block: what a pool cannot give back, wherever its blocks lie.
/// Pages inside a block are that block's alone, so only those at its two ends are kept by number.
class PagesInUse {
public:
    explicit PagesInUse(std::uint64_t page_bytes) noexcept : page_bytes_(page_bytes) {}

    void add(Range range) { change(range, true); }
    /// Takes back what was added.
    void remove(Range range) { change(range, false); }
    std::uint64_t bytes() const noexcept { return (inner_ + shared_.size()) * page_bytes_; }

private:
    void change(Range range, bool added);
    void change_page(std::uint64_t page, bool added);

    std::uint64_t page_bytes_;
    std::uint64_t inner_ = 0;                                  // pages
    std::unordered_map<std::uint64_t, std::uint32_t> shared_;  // by page: blocks that reach into it
};

}  // namespace tensorpool::command::inspect
